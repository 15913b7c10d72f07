package mongo

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// The mechanisms by which users log in.
const (
	scramSHA1   = "SCRAM-SHA-1"
	scramSHA256 = "SCRAM-SHA-256"
	mechX509    = "MONGODB-X509"
)

// How passwords are hashed: rounds, and bytes of salt, as MongoDB has them.
const (
	rounds1, rounds256 = 10_000, 15_000
	salt1, salt256     = 16, 28
)

// maxPayload bounds what a client may send in one step of a conversation.
const maxPayload = 4 << 10

// scramCredential is what is stored of a password, in MongoDB's shape.
type scramCredential struct {
	Iterations int32  `bson:"iterationCount"`
	Salt       string `bson:"salt"`
	StoredKey  string `bson:"storedKey"`
	ServerKey  string `bson:"serverKey"`
}

// credentials is what a user logs in with.
type credentials struct {
	SHA1     *scramCredential `bson:"SCRAM-SHA-1,omitempty"`
	SHA256   *scramCredential `bson:"SCRAM-SHA-256,omitempty"`
	External bool             `bson:"external,omitempty"`
}

// mechanisms lists how the user may log in.
func (c *credentials) mechanisms() []string {
	var list []string
	if c.External {
		list = append(list, "external")
	}
	if c.SHA1 != nil {
		list = append(list, scramSHA1)
	}
	if c.SHA256 != nil {
		list = append(list, scramSHA256)
	}
	return list
}

// of returns what is stored for a mechanism; nil when the user cannot log in so.
func (c *credentials) of(mechanism string) *scramCredential {
	if mechanism == scramSHA1 {
		return c.SHA1
	}
	return c.SHA256
}

// newCredentials hashes a password for the mechanisms of a list. digested says that the client has hashed it already, which only
// SCRAM-SHA-1 can use.
func newCredentials(user, password string, digested bool, mechanisms []string) (*credentials, error) {
	c := &credentials{}
	for _, m := range mechanisms {
		var err error
		switch m {
		case scramSHA1:
			digest := password
			if !digested && password != "" {
				digest = digestPassword(user, password)
			}
			c.SHA1, err = hashPassword(scram.SHA1.NewClientUnprepped, digest, salt1, rounds1)
		case scramSHA256:
			if digested {
				return nil, document.NewError(document.BadValue, "Use of SCRAM-SHA-256 requires undigested passwords")
			}
			c.SHA256, err = hashPassword(scram.SHA256.NewClient, password, salt256, rounds256)
		default:
			return nil, document.NewError(document.BadValue, "Unknown auth mechanism '%s'", m)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// digestPassword is what SCRAM-SHA-1 takes for the password, as MongoDB's specification of authentication says.
func digestPassword(user, password string) string {
	sum := md5.Sum([]byte(user + ":mongo:" + password))
	return hex.EncodeToString(sum[:])
}

func hashPassword(client func(user, password, other string) (*scram.Client, error), password string, saltBytes, rounds int) (*scramCredential, error) {
	if password == "" {
		return nil, document.NewError(document.BadValue, "a password must not be empty")
	}
	salt := make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return nil, document.NewError(document.Code(1), "random bytes for a salt: %v", err)
	}
	x, err := client("", password, "")
	if err != nil {
		return nil, document.NewError(document.BadValue, "the password cannot be prepared as RFC 4013 demands") // err may quote it
	}
	keys, err := x.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: rounds})
	if err != nil {
		return nil, document.NewError(document.Code(1), "a password could not be hashed")
	}
	return storedCredential(keys), nil
}

// storedCredential writes a credential as it is stored.
func storedCredential(c scram.StoredCredentials) *scramCredential {
	encode := base64.StdEncoding.EncodeToString
	return &scramCredential{Iterations: int32(c.Iters), Salt: encode([]byte(c.Salt)), StoredKey: encode(c.StoredKey), ServerKey: encode(c.ServerKey)}
}

// decoyCredential is a credential as it is stored, of nobody.
func (t *userTable) decoyCredential(mechanism string) *scramCredential {
	return storedCredential(t.decoy(mechanism, authName{}))
}

// stored returns the credential as the conversation wants it.
func (c *scramCredential) stored() (scram.StoredCredentials, error) {
	salt, err1 := base64.StdEncoding.DecodeString(c.Salt)
	storedKey, err2 := base64.StdEncoding.DecodeString(c.StoredKey)
	serverKey, err3 := base64.StdEncoding.DecodeString(c.ServerKey)
	return scram.StoredCredentials{KeyFactors: scram.KeyFactors{Salt: string(salt), Iters: int(c.Iterations)}, StoredKey: storedKey, ServerKey: serverKey},
		errors.Join(err1, err2, err3)
}

// decoy returns credentials for a user that is not there: nobody has the password, but the salt is the same each time, so that the
// conversation looks like that of a user who is.
func (t *userTable) decoy(mechanism string, name authName) scram.StoredCredentials {
	mac := func(what string) []byte {
		h := hmac.New(sha256.New, t.secret[:])
		h.Write([]byte(what + "\x00" + mechanism + "\x00" + name.DB + "\x00" + name.Name))
		return h.Sum(nil)
	}
	size, rounds, salt := sha256.Size, rounds256, salt256
	if mechanism == scramSHA1 {
		size, rounds, salt = 20, rounds1, salt1
	}
	return scram.StoredCredentials{KeyFactors: scram.KeyFactors{Salt: string(mac("salt")[:salt]), Iters: rounds},
		StoredKey: mac("stored")[:size], ServerKey: mac("server")[:size]}
}

// conversation is a login that is under way.
type conversation struct {
	id        int32
	mechanism string
	name      authName
	user      *userDoc // nil when there is no such user, or it may not log in
	steps     *scram.ServerConversation
	skipEmpty bool // the client does without the last, empty exchange
	proven    bool
	lacks     bool // the user is there, and has no credentials for this mechanism
}

// errLogin is what every failed login answers, whatever the reason.
func errLogin() error { return document.NewError(codeAuthFailed, "Authentication failed.") }

// startLogin begins a conversation, and returns its first answer.
func (r *request) startLogin(args map[string]bsoncore.Value, db string) (bsoncore.Document, error) {
	mechanism, _ := args["mechanism"].StringValueOK()
	x := &conversation{mechanism: mechanism}
	var hash scram.HashGeneratorFcn
	switch mechanism {
	case scramSHA1:
		hash = scram.SHA1
	case scramSHA256:
		hash = scram.SHA256
	default:
		return nil, document.NewError(document.Code(334), "Received authentication for mechanism %s which is not enabled", printable(mechanism))
	}
	payload, err := payloadOf(args["payload"])
	if err != nil {
		return nil, err
	}
	if options, ok := args["options"].DocumentOK(); ok {
		x.skipEmpty, _ = options.Lookup("skipEmptyExchange").BooleanOK()
	}
	a := &r.conn.auth
	a.login = nil
	server, err := hash.NewServer(func(user string) (scram.StoredCredentials, error) {
		x.name = authName{Name: user, DB: db}
		return r.credentialsFor(x)
	})
	if err != nil {
		return nil, document.NewError(document.Code(1), "%v", err)
	}
	x.steps = server.NewConversation()
	text, err := x.steps.Step(payload)
	if as := x.steps.AuthzID(); err != nil || as != "" && as != x.name.Name { // nobody acts for somebody else
		return nil, r.loginFailed(x.name, mechanism)
	}
	a.conversations++
	x.id = a.conversations
	a.login = x
	return conversationReply(x.id, false, text), nil
}

// credentialsFor looks the user of a conversation up.
func (r *request) credentialsFor(x *conversation) (scram.StoredCredentials, error) {
	decoy := r.server.users.decoy(x.mechanism, x.name)
	u, err := r.server.users.find(r.ctx, x.name)
	if err != nil {
		return decoy, err
	}
	found := u != nil
	if !found {
		u = &userDoc{}
		if err := bson.Unmarshal(r.server.users.nobody, u); err != nil {
			return decoy, err
		}
	}
	credential := u.Credentials.of(x.mechanism)
	if credential == nil {
		x.lacks = found
		return decoy, nil
	}
	stored, err := credential.stored()
	if !found || err != nil {
		return decoy, nil
	}
	x.user = u
	return stored, nil
}

// continueLogin takes a conversation one step further.
func (r *request) continueLogin(id int64, v bsoncore.Value) (bsoncore.Document, error) {
	a := &r.conn.auth
	x := a.login
	if x == nil {
		return nil, document.NewError(document.Code(17), "No SASL session state found")
	}
	if id != int64(x.id) {
		return nil, document.NewError(document.Code(17), "sasl: Mismatched conversation id")
	}
	payload, err := payloadOf(v)
	if err != nil {
		a.login = nil
		return nil, err
	}
	if x.proven { // the empty exchange
		a.login = nil
		if payload != "" {
			return nil, r.loginFailed(x.name, x.mechanism)
		}
		return conversationReply(x.id, true, ""), r.enter(x.user, x.mechanism)
	}
	text, err := x.steps.Step(payload)
	if err != nil || !x.steps.Valid() || x.user == nil {
		a.login = nil
		return nil, r.loginFailed(x.name, x.mechanism)
	}
	x.proven = true
	if !x.skipEmpty {
		return conversationReply(x.id, false, text), nil
	}
	a.login = nil
	return conversationReply(x.id, true, text), r.enter(x.user, x.mechanism)
}

// loginFailed notes a failed login.
func (r *request) loginFailed(name authName, mechanism string) error {
	r.server.log.Info("login failed", "connection", r.conn.id, "remote", remoteHost(r.conn.net), "user", printable(name.Name), "database", printable(name.DB),
		"mechanism", mechanism)
	return errLogin()
}

// printable bounds what a client said of itself, for logs and errors.
func printable(s string) string {
	const most = 64
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

// payloadOf reads the payload of a step: bytes, or base64.
func payloadOf(v bsoncore.Value) (string, error) {
	var payload string
	switch v.Type {
	case bsoncore.TypeBinary:
		_, data := v.Binary()
		payload = string(data)
	case bsoncore.TypeString:
		data, err := base64.StdEncoding.DecodeString(v.StringValue())
		if err != nil {
			return "", errLogin()
		}
		payload = string(data)
	default:
		return "", document.NewError(codeMissingField, "a step of a login needs a payload")
	}
	if len(payload) > maxPayload {
		return "", errLogin()
	}
	return payload, nil
}

func conversationReply(id int32, end bool, payload string) bsoncore.Document {
	return done(bsoncore.NewDocumentBuilder().AppendInt32("conversationId", id).AppendBoolean("done", end).
		AppendBinary("payload", bson.TypeBinaryGeneric, []byte(payload)))
}
