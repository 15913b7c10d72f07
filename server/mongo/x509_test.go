package mongo

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// sign makes a certificate; without a parent it signs itself.
func sign(t testing.TB, name pkix.Name, parent *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: name, DNSNames: []string{"server"}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour),
		IsCA: parent == nil, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	issuer, signer := c, any(key)
	if parent != nil {
		issuer, signer = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, issuer, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestCertificateLogin(t *testing.T) {
	s, root := guarded(t)
	authority := sign(t, pkix.Name{CommonName: "authority"}, nil)
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	ann := sign(t, pkix.Name{CommonName: "ann, b", Organization: []string{"o"}, Country: []string{"DE"}}, authority)
	bob := sign(t, pkix.Name{CommonName: "bob"}, authority)
	server := sign(t, pkix.Name{CommonName: "server"}, authority)
	connect := func(client *tls.Certificate) *testClient {
		near, far := net.Pipe()
		secure := &tls.Config{RootCAs: pool, ServerName: "server"}
		if client != nil {
			secure.Certificates = []tls.Certificate{*client}
		}
		return serveOn(t, s, tls.Client(near, secure),
			tls.Server(far, &tls.Config{Certificates: []tls.Certificate{*server}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven}))
	}
	const subject = `CN=ann\, b,O=o,C=DE`
	root.must(externalDB, cmd("createUser", subject, "roles", list(bson.D{{Key: "role", Value: "read"}, {Key: "db", Value: "d"}})))
	login := cmd("authenticate", 1, "mechanism", mechX509)

	c := connect(ann)
	c.refused("d", cmd("find", "c"), 13)
	if got := textIn(c.must(externalDB, login), "user"); got != subject {
		t.Errorf("the user is %s", got)
	}
	c.must("d", cmd("find", "c"))
	c.refused("d", cmd("insert", "c", "documents", list(bson.D{})), 13)
	c.must(externalDB, append(login, bson.E{Key: "user", Value: subject}))

	c = connect(ann)
	c.refused(externalDB, append(login, bson.E{Key: "user", Value: "CN=bob"}), 18)
	c.refused("admin", login, 18)
	hello := c.must("admin", cmd("hello", 1, "speculativeAuthenticate", append(login, bson.E{Key: "db", Value: externalDB})))
	if textIn(hello, "speculativeAuthenticate", "user") != subject || c.whoami() != subject+"@$external" {
		t.Error(hello)
	}
	connect(bob).refused(externalDB, login, 18)
	connect(nil).refused(externalDB, login, 18)
	dial(t, s).refused(externalDB, login, 18)
}

func TestSubjects(t *testing.T) {
	attribute := func(oid asn1.ObjectIdentifier, value any) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: oid, Value: value}
	}
	cn := asn1.ObjectIdentifier{2, 5, 4, 3}
	for _, x := range []struct {
		parts pkix.RDNSequence
		want  string
	}{
		{pkix.Name{CommonName: "a", Country: []string{"DE"}, Organization: []string{"o"}, OrganizationalUnit: []string{"u"}}.ToRDNSequence(), "CN=a,OU=u,O=o,C=DE"},
		{pkix.RDNSequence{{attribute(asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 25}, "org")}, {attribute(cn, "a")}}, "CN=a,DC=org"},
		{pkix.RDNSequence{{attribute(cn, "a"), attribute(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, "a@b")}}, "CN=a+emailAddress=a@b"},
		{pkix.RDNSequence{{attribute(cn, ` #a,b+c"d\e<f>g;h `)}}, `CN=\ #a\,b\+c\"d\\e\<f\>g\;h\ `},
		{pkix.RDNSequence{{attribute(cn, "#a\n")}}, `CN=\#a\0A`},
		{pkix.RDNSequence{{attribute(asn1.ObjectIdentifier{1, 2, 3}, "a")}}, "1.2.3=#130161"},
	} {
		der, err := asn1.Marshal(x.parts)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := parseSubject(der); !ok || got != x.want {
			t.Errorf("%s, not %s", got, x.want)
		}
	}
	for _, der := range [][]byte{{0x30, 0}, {0x30, 2, 0x31, 0}} {
		if got, ok := parseSubject(der); ok {
			t.Errorf("%x, a name without parts or attributes: %s", der, got)
		}
	}
}

func FuzzSubject(f *testing.F) {
	der, err := asn1.Marshal(pkix.Name{CommonName: "a, b", Country: []string{"DE"}}.ToRDNSequence())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	f.Fuzz(func(t *testing.T, der []byte) {
		if name, ok := parseSubject(der); ok && name == "" {
			t.Error("nobody's name")
		}
	})
}
