package mongo

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// secured is a connection with TLS.
type secured interface{ ConnectionState() tls.ConnectionState }

// subject returns the name in the client's certificate, "" when there is none that was verified.
func (c *conn) subject() string {
	s, isSecured := c.net.(secured)
	if !isSecured {
		return ""
	}
	chains := s.ConnectionState().VerifiedChains
	if len(chains) == 0 || len(chains[0]) == 0 {
		return ""
	}
	name, ok := parseSubject(chains[0][0].RawSubject)
	if !ok {
		return ""
	}
	return name
}

// parseSubject writes a distinguished name as RFC 2253 has it: the last part first. A part without attributes, which X.501 rules
// out and ASN.1 can write, makes it no name.
func parseSubject(der []byte) (string, bool) {
	var parts pkix.RDNSequence
	if rest, err := asn1.Unmarshal(der, &parts); err != nil || len(rest) > 0 || len(parts) == 0 {
		return "", false
	}
	var out strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		if len(parts[i]) == 0 {
			return "", false
		}
		for j, a := range parts[i] {
			if j > 0 {
				out.WriteByte('+')
			}
			if !appendAttribute(&out, a) {
				return "", false
			}
		}
	}
	return out.String(), true
}

// appendAttribute writes one attribute: by its short name if it has one.
func appendAttribute(out *strings.Builder, a pkix.AttributeTypeAndValue) bool {
	short := shortName(a.Type.String())
	value, isText := a.Value.(string)
	if short != "" && isText {
		out.WriteString(short + "=")
		appendEscaped(out, value)
		return true
	}
	der, err := asn1.Marshal(a.Value)
	if err != nil {
		return false
	}
	out.WriteString(a.Type.String() + "=#" + strings.ToUpper(hex.EncodeToString(der)))
	return true
}

// shortName is how an attribute is called, by its object identifier: RFC 4514, 3, and what OpenSSL adds.
func shortName(oid string) string {
	switch oid {
	case "2.5.4.3":
		return "CN"
	case "2.5.4.4":
		return "SN"
	case "2.5.4.5":
		return "serialNumber"
	case "2.5.4.6":
		return "C"
	case "2.5.4.7":
		return "L"
	case "2.5.4.8":
		return "ST"
	case "2.5.4.9":
		return "street"
	case "2.5.4.10":
		return "O"
	case "2.5.4.11":
		return "OU"
	case "2.5.4.12":
		return "title"
	case "2.5.4.17":
		return "postalCode"
	case "2.5.4.42":
		return "GN"
	case "0.9.2342.19200300.100.1.1":
		return "UID"
	case "0.9.2342.19200300.100.1.25":
		return "DC"
	case "1.2.840.113549.1.9.1":
		return "emailAddress"
	}
	return ""
}

// appendEscaped writes a value with the characters escaped that mean something in a name: RFC 2253, 2.4.
func appendEscaped(out *strings.Builder, value string) {
	for i := range len(value) {
		c := value[i]
		switch {
		case strings.IndexByte(`,+"\<>;`, c) >= 0, i == 0 && (c == ' ' || c == '#'), i == len(value)-1 && c == ' ':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < 0x20 || c == 0x7f:
			out.WriteString(`\` + strings.ToUpper(hex.EncodeToString([]byte{c})))
		default:
			out.WriteByte(c)
		}
	}
}

// certificateLogin logs the owner of the connection's certificate in.
func (r *request) certificateLogin(args map[string]bsoncore.Value, db string) (bsoncore.Document, error) {
	if mechanism, _ := args["mechanism"].StringValueOK(); mechanism != mechX509 {
		return nil, document.NewError(document.Code(334), "Received authentication for mechanism %s which is not enabled", printable(mechanism))
	}
	subject := r.conn.subject()
	if subject == "" {
		return nil, document.NewError(codeAuthFailed, "No verified subject name available from client")
	}
	name := authName{Name: subject, DB: externalDB}
	if user, given := args["user"]; given {
		if text, _ := user.StringValueOK(); text != subject {
			return nil, r.loginFailed(name, mechX509)
		}
	}
	u, err := r.server.users.find(r.ctx, name)
	if err != nil {
		return nil, err
	}
	if u == nil || db != externalDB {
		return nil, r.loginFailed(name, mechX509)
	}
	if err := r.enter(u, mechX509); err != nil {
		return nil, err
	}
	return done(bsoncore.NewDocumentBuilder().AppendString("dbname", externalDB).AppendString("user", subject)), nil
}
