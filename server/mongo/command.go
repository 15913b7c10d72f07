package mongo

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// command is one command of the protocol.
type command struct {
	name     string
	run      func(r *request) (bsoncore.Document, error)
	fields   []string // what it knows, beside the fields that every command may have
	types    []fieldType
	needed   []string               // fields that have to be there
	known    map[string]*knownField // by name
	anyField bool                   // it takes whatever comes
	open     bool                   // it may be used before logging in
	admin    bool                   // on the admin database only
	write    bool
	inTxn    bool // it may be part of a transaction
	stable   bool // it is in the Stable API, version 1
	aliases  []string
	help     string
}

// sequence is the field of the command that may stand beside it, as a sequence of documents; "" when there is none. What asks for privileges
// looks for all others in the command itself.
func (c *command) sequence() string {
	switch c.name {
	case "insert":
		return "documents"
	case "update":
		return "updates"
	case "delete":
		return "deletes"
	}
	return ""
}

// commandTable returns all commands by their names.
func commandTable() map[string]*command {
	table := map[string]*command{}
	for _, group := range [][]*command{
		handshakeCommands(), crudCommands(), queryCommands(), catalogueCommands(), planCacheCommands(), sessionCommands(), failPointCommands(),
		userCommands(), authCommands(), diagnosticCommands(), operationCommands(), replicationCommands(), maintenanceCommands(),
	} {
		for _, c := range group {
			c.knowFields()
			table[c.name] = c
			for _, alias := range c.aliases {
				table[alias] = c
			}
		}
	}
	return table
}

// admit checks what has to hold before a command runs: login, database, types, transaction, Stable API. Strangers learn nothing of what
// is wrong.
func (r *request) admit() error {
	if !document.IsDatabaseName(r.db) {
		return document.NewError(codeInvalidNamespace, "Invalid database name: '%s'", printable(r.db))
	}
	if r.command.admin && r.db != "admin" {
		return document.NewError(codeUnauthorized, "%s may only be run against the admin database.", r.name)
	}
	if err := r.authorise(); err != nil {
		return err
	}
	if err := r.checkTypes(); err != nil {
		return err
	}
	if err := r.checkVersion(); err != nil {
		return err
	}
	if err := r.parseConcerns(); err != nil {
		return err
	}
	return r.joinSession()
}

// checkVersion checks the Stable API fields.
func (r *request) checkVersion() error {
	if !r.versioned {
		return nil
	}
	version, err := r.text("apiVersion")
	if err != nil {
		return err
	}
	strict, err := r.flag("apiStrict")
	if err != nil {
		return err
	}
	if version == "" {
		if r.has("apiStrict") || r.has("apiDeprecationErrors") {
			return document.NewError(document.Code(4886600), "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion")
		}
		return nil
	}
	if version != "1" {
		return document.NewError(document.Code(322), "API version must be \"1\"")
	}
	if stage := r.unstableStage(); strict && stage != "" {
		return document.NewError(document.Code(323), "%s is not allowed with 'apiStrict: true' in API Version 1", stage)
	}
	if strict && !r.command.stable {
		return document.NewError(document.Code(323), "Provided apiStrict:true, but the command %s is not in API Version 1. Information on supported commands and migrations in API Version 1 can be found at https://dochub.mongodb.org/core/manual-versioned-api", r.name)
	}
	return nil
}

// unstableStage returns a stage of an aggregate's pipeline that is not in the Stable API; "" if there is none.
func (r *request) unstableStage() string {
	if r.command.name != "aggregate" {
		return ""
	}
	array, _ := r.args["pipeline"].ArrayOK()
	values, _ := array.Values() // what is wrong with it is said later
	for _, v := range values {
		stage, _ := v.DocumentOK()
		e, err := stage.IndexErr(0)
		if err != nil {
			continue
		}
		switch e.Key() {
		case "$currentOp", "$indexStats", "$listLocalSessions", "$listSessions", "$planCacheStats", "$search", "$searchMeta":
			return e.Key()
		}
	}
	return ""
}
