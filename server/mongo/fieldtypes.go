package mongo

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// fieldType says what a field of a command has to be. The commands themselves look at what the value says.
type fieldType struct {
	name     string
	types    []bsoncore.Type // empty: any
	expected string          // as errors name them
	needed   bool            // it has to be there
	notNull  bool            // null is a value of a wrong type, and not like a field that is not there
}

// typesOf returns the types of the fields of a command. A word is name=type, with ! where null is refused, or + where the field is
// needed. A truth is a bool or a number.
func typesOf(command string) []fieldType {
	var list []fieldType
	for word := range strings.FieldsSeq(genericTypes + " " + typeTable(command)) {
		name, kind, _ := strings.Cut(word, "=")
		f := fieldType{name: name, expected: strings.TrimRight(kind, "!+"), needed: strings.HasSuffix(kind, "+"), notNull: strings.HasSuffix(kind, "!")}
		f.types = typesNamed(f.expected)
		list = append(list, f)
	}
	return list
}

func typesNamed(kind string) []bsoncore.Type {
	numbers := []bsoncore.Type{bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeDecimal128}
	switch kind {
	case "bool":
		return []bsoncore.Type{bsoncore.TypeBoolean}
	case "truth":
		return append(numbers, bsoncore.TypeBoolean)
	case "number":
		return numbers
	case "int":
		return numbers[:1]
	case "long":
		return numbers[1:2]
	case "object":
		return []bsoncore.Type{bsoncore.TypeEmbeddedDocument}
	case "array":
		return []bsoncore.Type{bsoncore.TypeArray}
	case "string":
		return []bsoncore.Type{bsoncore.TypeString}
	}
	return nil
}

// genericTypes is typeTable of fields that every command may have.
const genericTypes = "txnNumber=long autocommit=bool startTransaction=bool"

// typeTable is what MongoDB is strict about.
func typeTable(command string) string {
	switch command {
	case "find":
		return "filter=object! projection=object! sort=object! min=object! max=object! collation=object! singleBatch=bool! returnKey=bool! " +
			"showRecordId=bool! tailable=bool! oplogReplay=bool! noCursorTimeout=bool! awaitData=bool! allowPartialResults=bool! allowDiskUse=bool! hint=any"
	case "aggregate":
		return "cursor=object! explain=bool! allowDiskUse=bool! bypassDocumentValidation=truth hint=any"
	case "count":
		return "hint=any"
	case "distinct":
		return "key=string+"
	case "insert":
		return "ordered=bool stmtId=int stmtIds=array bypassDocumentValidation=truth"
	case "update", "delete":
		return "ordered=bool stmtId=int stmtIds=array bypassDocumentValidation=truth"
	case "getMore":
		return "collection=string+ term=long"
	case "killCursors":
		return "cursors=array+"
	case "create":
		return "capped=truth autoIndexId=truth temp=truth encryptedFields=object validationLevel=string validationAction=string size=number " +
			"max=number viewOn=string pipeline=array"
	case "createIndexes":
		return "indexes=array ignoreUnknownIndexOptions=truth"
	case "findAndModify":
		return "arrayFilters=array hint=any stmtId=int"
	case "collMod":
		return "validationLevel=string validationAction=string viewOn=string pipeline=array timeseries=object validator=object index=object " +
			"changeStreamPreAndPostImages=object"
	case "renameCollection":
		return "to=string+ dropTarget=bool!"
	case "listCollections":
		return "nameOnly=bool authorizedCollections=bool"
	case "listIndexes":
		return "includeBuildUUIDs=truth"
	case "listDatabases":
		return "authorizedDatabases=bool"
	}
	return typeTableOfServer(command)
}

// typeTableOfServer is typeTable of the commands that are about the server and its users.
func typeTableOfServer(command string) string {
	switch command {
	case "hello", "isMaster":
		return "saslSupportedMechs=string maxAwaitTimeMS=number topologyVersion=object compression=array helloOk=truth"
	case "profile":
		return "slowms=number sampleRate=number"
	case "getDefaultRWConcern":
		return "inMemory=bool"
	case "replSetGetStatus":
		return "initialSync=truth!"
	case "replSetGetConfig":
		return "commitmentStatus=truth!"
	case "createUser":
		return "pwd=string customData=object mechanisms=array digestPassword=truth authenticationRestrictions=array roles=array+"
	case "updateUser":
		return "pwd=string customData=object mechanisms=array digestPassword=truth authenticationRestrictions=array roles=array"
	case "createRole":
		return "privileges=array+ roles=array+ authenticationRestrictions=array"
	case "updateRole":
		return "privileges=array roles=array authenticationRestrictions=array"
	case "grantRolesToUser", "revokeRolesFromUser", "grantRolesToRole", "revokeRolesFromRole":
		return "roles=array+"
	case "grantPrivilegesToRole", "revokePrivilegesFromRole":
		return "privileges=array+"
	case "saslStart":
		return "mechanism=string+ payload=any+"
	case "saslContinue":
		return "conversationId=int+ payload=any+"
	case "killOp":
		return "op=number"
	}
	return ""
}

// knownField is a field of a command, found by its name.
type knownField struct {
	name        string
	allowed     bool       // the command knows it, or every command does; of others only the type is looked at
	api         bool       // it is one of the Stable API
	transaction bool       // it says what transaction the command is part of
	kind        *fieldType // nil: any type
}

// knowFields makes the table of a command's fields, in which all is found at once that is to be known of a field that a client gives.
func (c *command) knowFields() {
	c.types, c.known = typesOf(c.name), map[string]*knownField{}
	at := func(name string) *knownField {
		if c.known[name] == nil {
			c.known[name] = &knownField{name: name}
		}
		return c.known[name]
	}
	at(c.name)
	for _, name := range c.aliases {
		at(name)
	}
	for _, list := range [][]string{genericFields(), c.fields} {
		for _, name := range list {
			at(name).allowed = true
		}
	}
	for _, name := range []string{"apiVersion", "apiStrict", "apiDeprecationErrors"} {
		at(name).api = true
	}
	for _, name := range []string{"autocommit", "startTransaction"} {
		at(name).transaction = true
	}
	for i := range c.types {
		f := &c.types[i]
		at(f.name).kind = f
		if f.needed {
			c.needed = append(c.needed, f.name)
		}
	}
}

// refuses reports whether a value is of a wrong type.
func (f *fieldType) refuses(v bsoncore.Value) bool {
	if v.Type == bsoncore.TypeNull {
		return f.name == "hint" || f.expected == "array" || f.notNull && len(f.types) > 0
	}
	return len(f.types) > 0 && !slices.Contains(f.types, v.Type)
}

// wrong is the error of a value that is refused.
func (f *fieldType) wrong(command string, v bsoncore.Value) error {
	switch {
	case v.Type == bsoncore.TypeNull && f.name == "hint":
		return document.NewError(document.FailedToParse, "Hint must be a string or an object")
	case v.Type == bsoncore.TypeNull && f.expected == "array":
		return document.NewError(document.Code(10065), "invalid parameter: expected an object (%s)", f.name)
	}
	return wrongType(command+"."+f.name, v, f.expected)
}

// checkTypes refuses fields of wrong types, the first one that the client gives, and those that are missing.
func (r *request) checkTypes() error {
	if r.mistyped != nil {
		return r.mistyped.wrong(r.name, r.args[r.mistyped.name])
	}
	for _, name := range r.command.needed {
		if r.has(name) {
			continue
		}
		if _, asSequence := r.docs[name]; !asSequence {
			return missingField(r.name + "." + name)
		}
	}
	return nil
}
