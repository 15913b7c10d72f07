package mongo

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// failPoints is what configureFailPoint has set.
type failPoints struct {
	mu     sync.Mutex
	active map[string]*failCommand
	used   int64 // how often they have struck, over all
}

// The fail points that there are: before a command runs, in a getMore that has got its cursor, around a retryable write, and in
// every command that may only take so long.
const (
	failTimeName    = "maxTimeAlwaysTimeOut"
	failWriteName   = "onPrimaryTransactionalWrite"
	failCommandName = "failCommand"
	failGetMoreName = "failGetMoreAfterCursorCheckout"
)

// failCommand makes commands fail.
type failCommand struct {
	times    int64 // left; -1: always
	skip     int64 // to let pass before
	commands []string
	appName  string

	code      document.Code // 0: no error
	labels    []string
	hasLabels bool
	close     bool
	block     time.Duration
	concern   bsoncore.Document // writeConcernError
}

func failPointCommands() []*command {
	return []*command{
		{name: "configureFailPoint", run: (*request).configureFailPoint, fields: []string{"mode", "data"}, admin: true, help: "makes commands fail, for the tests of drivers"},
		{name: "testVersion2", run: (*request).testVersion2, help: "does nothing, and is not in the Stable API, for the tests of drivers"},
	}
}

func (r *request) configureFailPoint() (bsoncore.Document, error) {
	if !r.server.o.TestCommands {
		return nil, document.NewError(codeCommandNotFound, "no such command: 'configureFailPoint'")
	}
	name, _ := r.target.StringValueOK()
	if !slices.Contains([]string{failCommandName, failGetMoreName, failWriteName, failTimeName}, name) {
		return nil, document.NewError(document.BadValue, "no fail point is called %s here", name)
	}
	f, err := r.parseFailPoint(name)
	if err != nil {
		return nil, err
	}
	p := &r.server.fails
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.used
	if p.active == nil {
		p.active = map[string]*failCommand{}
	}
	if f != nil && name == failGetMoreName {
		f.commands = []string{"getMore"}
	}
	p.active[name] = f
	return done(bsoncore.NewDocumentBuilder().AppendInt64("count", before)), nil
}

// testVersion2 is a command of which version 1 of the Stable API does not know.
func (r *request) testVersion2() (bsoncore.Document, error) {
	if !r.server.o.TestCommands {
		return nil, document.NewError(codeCommandNotFound, "no such command: 'testVersion2'")
	}
	return ok(), nil
}

// parseFailPoint reads mode and data; nil is off.
func (r *request) parseFailPoint(name string) (*failCommand, error) {
	f := &failCommand{times: -1, close: name == failWriteName}
	mode := r.args["mode"]
	if text, isText := mode.StringValueOK(); isText {
		if text == "off" {
			return nil, nil
		}
		if text != "alwaysOn" {
			return nil, document.NewError(document.BadValue, "unknown mode: %s", text)
		}
	} else if doc, isDoc := mode.DocumentOK(); isDoc {
		for name, v := range argsOf(doc) {
			n, _ := asInt64(v)
			switch name {
			case "times":
				f.times = n
			case "skip":
				f.skip = n
			default:
				return nil, document.NewError(document.BadValue, "unknown mode: %s", name)
			}
		}
	} else {
		return nil, wrongType("configureFailPoint.mode", mode, "object")
	}
	data, err := r.document("data")
	if err != nil {
		return nil, err
	}
	return f, f.parse(data)
}

func (f *failCommand) parse(data bsoncore.Document) error {
	for name, v := range argsOf(data) {
		switch name {
		case "failCommands":
			f.commands = texts(v)
		case "appName":
			f.appName, _ = v.StringValueOK()
		case "failBeforeCommitExceptionCode", "errorCode":
			n, _ := asInt64(v)
			f.code = document.Code(n)
		case "errorLabels":
			f.labels, f.hasLabels = texts(v), true
		case "closeConnection":
			f.close, _ = v.BooleanOK()
		case "blockConnection":
			if on, _ := v.BooleanOK(); on {
				ms, _ := asInt64(data.Lookup("blockTimeMS"))
				f.block = time.Duration(ms) * time.Millisecond
			}
		case "writeConcernError":
			f.concern, _ = v.DocumentOK()
			if labels, err := f.concern.LookupErr("errorLabels"); err == nil {
				f.labels, f.hasLabels = texts(labels), true
			}
		case "blockTimeMS", "failInternalCommands", "failLocalClients", "namespace", "threadName":
		default:
			return document.NewError(document.BadValue, "unknown field of data: %s", name)
		}
	}
	f.concern = slices.Clone(f.concern)
	return nil
}

// texts returns the strings of an array.
func texts(v bsoncore.Value) []string {
	array, isArray := v.ArrayOK()
	if !isArray {
		return nil
	}
	values, err := array.Values()
	if err != nil {
		return nil
	}
	var list []string
	for _, v := range values {
		if s, isText := v.StringValueOK(); isText {
			list = append(list, s)
		}
	}
	return list
}

// strike returns what is to happen to a command, and counts it.
func (p *failPoints) strike(r *request, name string) *failCommand {
	return p.strikeIf(r, name, func(*failCommand) bool { return true })
}

// strikeIf is strike for fail points of a kind.
func (p *failPoints) strikeIf(r *request, name string, kind func(f *failCommand) bool) *failCommand {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.active[name]
	if f == nil || !kind(f) || r.name == "configureFailPoint" || name != failWriteName && name != failTimeName && !slices.Contains(f.commands, r.name) && !slices.Contains(f.commands, r.command.name) {
		return nil
	}
	if f.appName != "" && f.appName != r.conn.appName {
		return nil
	}
	if f.skip > 0 {
		f.skip--
		return nil
	}
	if f.times == 0 {
		return nil
	}
	if f.times > 0 {
		f.times--
	}
	p.used++
	return f
}

// apply makes a command fail if a fail point says so.
func (p *failPoints) apply(r *request) error {
	f := p.strike(r, failCommandName)
	if f == nil {
		return nil
	}
	if f.block > 0 {
		if err := r.blockFor(f.block); err != nil {
			return err
		}
	}
	if f.close {
		return errDropConnection
	}
	if f.concern != nil {
		r.concernErr = f.concern
		if f.hasLabels {
			r.labels = append(r.labels, f.labels...)
		} else if code, _ := f.concern.Lookup("code").Int32OK(); r.retriesWrite() && retryableCode(document.Code(code)) {
			r.labels = append(r.labels, retryableLabel)
		}
	}
	if f.code == 0 {
		return nil
	}
	err := document.NewError(f.code, "Failing command via 'failCommand' failpoint")
	switch {
	case f.hasLabels:
		err.Labels = f.labels
	case r.retriesWrite() && retryableCode(f.code):
		err.Labels = append(err.Labels, retryableLabel)
	}
	switch {
	case !r.has("autocommit") || f.hasLabels:
		return err
	case r.name == "commitTransaction":
		return transientCommit(err)
	}
	return transient(err)
}

// applyToGetMore makes a getMore fail that has got its cursor.
func (p *failPoints) applyToGetMore(r *request, x *cursor) error {
	f := p.strike(r, failGetMoreName)
	switch {
	case f == nil:
		return nil
	case f.close:
		return errDropConnection
	}
	err := document.NewError(f.code, "Failing getMore via the fail point %s", failGetMoreName)
	if x.changes && resumableCode(f.code) {
		err.Labels = []string{"ResumableChangeStreamError"}
	}
	return err
}

// beforeWrite makes a statement of a retryable write fail before it is carried out.
func (p *failPoints) beforeWrite(r *request) error {
	if !r.retryable {
		return nil
	}
	f := p.strikeIf(r, failWriteName, func(f *failCommand) bool { return f.code != 0 })
	switch {
	case f == nil:
		return nil
	case f.close:
		return errDropConnection
	}
	return document.NewError(f.code, "Failing the write via the fail point %s", failWriteName)
}

// strikesWrites reports whether a fail point is set that counts the statements of retryable writes.
func (p *failPoints) strikesWrites() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active[failWriteName] != nil
}

// afterWrite is told that a statement of a retryable write has changed something. The command goes on to its end, of which its
// client does not hear if a fail point says so.
func (p *failPoints) afterWrite(r *request) {
	if !r.retryable {
		return
	}
	if f := p.strikeIf(r, failWriteName, func(f *failCommand) bool { return f.code == 0 }); f != nil && f.close {
		r.unheard = true
	}
}

// blockFor holds a command back, for no longer than it may take.
func (r *request) blockFor(d time.Duration) error {
	stop, err := r.limitTime()
	if err != nil {
		return err
	}
	defer stop()
	if err := r.server.clock.Sleep(r.ctx, d); err != nil {
		return context.Cause(r.ctx)
	}
	return nil
}

func elementsOf(doc bsoncore.Document) []bsoncore.Element {
	elements, err := doc.Elements()
	if err != nil {
		return nil
	}
	return elements
}

// retryableLabel is what an error has after which drivers send a write again.
const retryableLabel = "RetryableWriteError"

// retryableCode reports whether drivers may send a write again after an error with this code.
func retryableCode(code document.Code) bool {
	switch code {
	case 6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436:
		return true
	}
	return false
}

// resumableCode reports whether drivers may open a change stream again after an error with this code.
func resumableCode(code document.Code) bool {
	switch code {
	case 63, 133, 150, 234, 13388:
		return true
	}
	return retryableCode(code)
}

// retriesWrite reports whether the command is one that its driver sends again after such an error.
func (r *request) retriesWrite() bool {
	return r.retryable || r.endsTransaction()
}
