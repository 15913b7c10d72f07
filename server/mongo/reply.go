package mongo

import (
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/wire"
)

// Codes that package document has no use for.
const (
	codeUnauthorized      document.Code = 13
	codeInvalidLength     document.Code = 16
	codeInvalidBSON       document.Code = 22
	codeAuthFailed        document.Code = 18
	codeIllegalOperation  document.Code = 20
	codeCursorNotFound    document.Code = 43
	codeCursorKilled      document.Code = 237
	codeCommandNotFound   document.Code = 59
	codeInvalidOptions    document.Code = 72
	codeInvalidNamespace  document.Code = 73
	codeNotSupported      document.Code = 115
	codeCommandFailed     document.Code = 125
	codeDurationOverflow  document.Code = 159
	codeNotOnView         document.Code = 166
	codeShutdown          document.Code = 91
	codeSnapshotTooOld    document.Code = 239
	codeInterrupted       document.Code = 11601
	codeNotUnique         document.Code = 359
	codeNoSuchTransaction document.Code = 251
	codeUnknownField      document.Code = 40415
	codeMissingField      document.Code = 40414
	codeDuplicateField    document.Code = 40413
	codeOutOfDiskSpace    document.Code = 14031

	codeUnsupportedOpQuery document.Code = 352
)

// errorReply is the answer for an error.
func errorReply(err error) bsoncore.Document {
	b := bsoncore.NewDocumentBuilder().AppendDouble("ok", 0)
	appendError(b, err)
	var e *document.Error
	if errors.As(err, &e) && len(e.Labels) > 0 {
		labels := bsoncore.NewArrayBuilder()
		for _, l := range e.Labels {
			labels.AppendString(l)
		}
		b.AppendArray("errorLabels", labels.Build())
	}
	return b.Build()
}

// appendError appends the fields of an error, as answers and write errors have them.
func appendError(b *bsoncore.DocumentBuilder, err error) {
	b.AppendString("errmsg", message(err))
	code := document.CodeOf(err)
	b.AppendInt32("code", int32(code)).AppendString("codeName", code.String())
	appendDetails(b, err)
}

// message is an error's text without its code, which is told apart. It may repeat what the client has sent, and that may be a whole
// message: of more than anybody reads there is only the beginning.
func message(err error) string {
	const most = 64 << 10
	text := err.Error()
	if e := (*document.Error)(nil); errors.As(err, &e) {
		text = e.Message
	}
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// What an answer may have: as many bytes as on a mongod, and a batch, which one document of the largest size and what stands around it may
// fill, as many as a message.
const (
	maxReply      = document.MaxDocumentBytes + 16<<10
	maxBatchReply = wire.MaxMessage - wire.MsgBytes - checksumBytes
	checksumBytes = 4
)

// sendable is an answer, or an error in its place if it is too large, as no client could read the message.
func (r *request) sendable(reply bsoncore.Document, err error) (bsoncore.Document, error) {
	most := maxReply
	if r.roomy {
		most = maxBatchReply
	}
	if err != nil || len(reply) <= most {
		return reply, err
	}
	return nil, document.NewError(document.BSONObjectTooLarge, "the answer to %s would have %d bytes, more than %d", r.name, len(reply), most)
}

func appendDetails(b *bsoncore.DocumentBuilder, err error) {
	var e *document.Error
	if !errors.As(err, &e) {
		return
	}
	if e.KeyPattern != nil {
		b.AppendDocument("keyPattern", e.KeyPattern)
	}
	if e.KeyValue != nil {
		b.AppendDocument("keyValue", e.KeyValue)
	}
	if e.Collation != nil {
		b.AppendDocument("collation", e.Collation)
	}
	switch {
	case e.Info == nil || len(e.Info) > document.MaxDocumentBytes:
	case e.Code == codeNotUnique:
		b.AppendValue("violations", bsoncore.Document(e.Info).Lookup("violations"))
	default:
		b.AppendDocument("errInfo", e.Info)
	}
}

// ok is the answer that says nothing but that all went well.
func ok() bsoncore.Document { return bsoncore.NewDocumentBuilder().AppendDouble("ok", 1).Build() }

// done ends an answer.
func done(b *bsoncore.DocumentBuilder) bsoncore.Document { return b.AppendDouble("ok", 1).Build() }

// finish adds to an answer what all answers of a replica set have: the time of the cluster, and of the operation.
func (r *request) finish(reply bsoncore.Document) bsoncore.Document {
	if r.server.o.Standalone || r.legacy && r.conn.offered == nil {
		return reply
	}
	at, out := int32(0), []byte(reply[:len(reply)-1])
	if !r.roomy {
		at, out = bsoncore.AppendDocumentStart(make([]byte, 0, len(reply)+finishBytes))
		out = append(out, reply[4:len(reply)-1]...)
	}
	if r.concernErr != nil {
		out = bsoncore.AppendDocumentElement(out, "writeConcernError", r.concernErr)
	}
	if len(r.labels) > 0 {
		labels := bsoncore.NewArrayBuilder()
		for _, l := range r.labels {
			labels.AppendString(l)
		}
		out = bsoncore.AppendArrayElement(out, "errorLabels", labels.Build())
	}
	out, err := bsoncore.AppendDocumentEnd(appendTime(out, r.server.store.LastTime()), at)
	if err != nil {
		return reply
	}
	return out
}

// finishBytes is room for what finish mostly adds.
const finishBytes = 160

// appendTime appends the time of the cluster, signed by nobody, and of the operation.
func appendTime(out []byte, now bson.Timestamp) []byte {
	var nobody [20]byte
	var outer, inner int32
	outer, out = bsoncore.AppendDocumentElementStart(out, "$clusterTime")
	out = bsoncore.AppendTimestampElement(out, "clusterTime", now.T, now.I)
	inner, out = bsoncore.AppendDocumentElementStart(out, "signature")
	out = bsoncore.AppendBinaryElement(out, "hash", bson.TypeBinaryGeneric, nobody[:])
	out = bsoncore.AppendInt64Element(out, "keyId", 0)
	out, _ = bsoncore.AppendDocumentEnd(out, inner) // fails only for a wrong start
	out, _ = bsoncore.AppendDocumentEnd(out, outer)
	return bsoncore.AppendTimestampElement(out, "operationTime", now.T, now.I)
}

// D is a document of an answer that is not made often enough for its speed to matter.
func encode(d bson.D) (bsoncore.Document, error) {
	raw, err := bson.Marshal(d)
	if err != nil {
		return nil, document.NewError(document.Code(1), "encode an answer: %v", err)
	}
	return raw, nil
}
