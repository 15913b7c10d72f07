package mongo

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// secret reports whether a field of a command is never shown: in errors, logs, currentOp or the profile.
func secret(command, field string) bool {
	switch command {
	case "createUser", "updateUser":
		return field == "pwd"
	case "saslStart", "saslContinue":
		return field == "payload"
	case "authenticate":
		return field == "key" || field == "nonce"
	case "hello", "isMaster", "ismaster":
		return field == "speculativeAuthenticate"
	case "copydbsaslstart", "copydbgetnonce", "copydb":
		return true
	}
	return false
}

// redacted returns a command with what is secret left out, to be shown. A command without secrets is returned as it is.
func redacted(command string, body bsoncore.Document) bsoncore.Document {
	elements, err := body.Elements()
	if err != nil {
		return body
	}
	hidden := false
	for _, e := range elements {
		hidden = hidden || secret(command, e.Key())
	}
	if command == "explain" {
		hidden = true // what is inside may have some
	}
	if !hidden {
		return body
	}
	b := bsoncore.NewDocumentBuilder()
	for i, e := range elements {
		inner, isDoc := e.Value().DocumentOK()
		switch {
		case secret(command, e.Key()):
			b.AppendString(e.Key(), "xxx")
		case command == "explain" && i == 0 && isDoc:
			if first, err := inner.IndexErr(0); err == nil && first.Key() != "explain" {
				inner = redacted(first.Key(), inner)
			}
			b.AppendDocument(e.Key(), inner)
		default:
			b.AppendValue(e.Key(), e.Value())
		}
	}
	return b.Build()
}

// maxShown bounds how much of a command an error quotes.
const maxShown = 1 << 10

// quoted writes a command for an error, as a shell would: { find: "c", filter: {} }.
func quoted(command string, body bsoncore.Document) string {
	elements, err := redacted(command, body).Elements()
	if err != nil {
		return "{}"
	}
	var out strings.Builder
	out.WriteString("{ ")
	for i, e := range elements {
		if e.Key() == "$clusterTime" {
			continue
		}
		if i > 0 {
			out.WriteString(", ")
		}
		text := "..."
		if v := e.Value(); len(v.Data) <= maxShown {
			text = v.String()
			if n, isWhole := v.AsInt64OK(); isWhole {
				text = strconv.FormatInt(n, 10)
			}
		}
		if out.Len()+len(text) > maxShown {
			out.WriteString("...")
			break
		}
		out.WriteString(printable(e.Key()) + ": " + text)
	}
	return out.String() + " }"
}
