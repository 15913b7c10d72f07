package godriver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// sign makes a certificate, and a file with it and its key; without a parent it signs itself.
func sign(t *testing.T, name string, parent *tls.Certificate) (*tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name, Organization: []string{"Pando"}},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: parent == nil, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	issuer, signer := c, any(key)
	if parent != nil {
		issuer, signer = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, issuer, &key.PublicKey, signer)
	check(t, err)
	leaf, err := x509.ParseCertificate(der)
	check(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	file := filepath.Join(t.TempDir(), "pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	check(t, os.WriteFile(file, text, 0o600))
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, file
}

// TestCertificateLogin: the driver logs in with a certificate, and with a password through TLS; without either it may do nothing.
func TestCertificateLogin(t *testing.T) {
	authority, authorityFile := sign(t, "authority", nil)
	_, serverFile := sign(t, "server", authority)
	ann, _ := sign(t, "ann", authority)
	s := start(t, filepath.Join(t.TempDir(), "db"), "127.0.0.1:0", "--auth", "--tls-cert", serverFile, "--tls-ca", authorityFile)
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	connect := func(certificates []tls.Certificate, login *options.Credential) *mongo.Client {
		o := options.Client().ApplyURI("mongodb://" + s.addr + "/?directConnection=true").SetServerSelectionTimeout(patience).
			SetTLSConfig(&tls.Config{RootCAs: pool, Certificates: certificates})
		if login != nil {
			o.SetAuth(*login)
		}
		c, err := mongo.Connect(o)
		check(t, err)
		t.Cleanup(func() { _ = c.Disconnect(t.Context()) })
		return c
	}
	const subject = "CN=ann,O=Pando"
	nobody := connect(nil, nil)
	check(t, nobody.Database("admin").RunCommand(t.Context(), bson.D{{Key: "createUser", Value: "root"}, {Key: "pwd", Value: "secret"}, {Key: "roles", Value: bson.A{"root"}}}).Err())
	if err := nobody.Database("d").RunCommand(t.Context(), bson.D{{Key: "find", Value: "c"}}).Err(); err == nil {
		t.Error("nobody may read")
	}
	root := connect(nil, &options.Credential{Username: "root", Password: "secret"})
	check(t, root.Database("$external").RunCommand(t.Context(), bson.D{
		{Key: "createUser", Value: subject}, {Key: "roles", Value: bson.A{bson.D{{Key: "role", Value: "readWrite"}, {Key: "db", Value: "d"}}}},
	}).Err())
	x509Login := &options.Credential{AuthMechanism: "MONGODB-X509", AuthSource: "$external"}
	c := connect([]tls.Certificate{*ann}, x509Login)
	_, err := c.Database("d").Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	check(t, err)
	n, err := c.Database("d").Collection("c").CountDocuments(t.Context(), bson.D{})
	check(t, err)
	want(t, "documents", n, 1)
	if _, err := c.Database("e").Collection("c").InsertOne(t.Context(), bson.D{}); err == nil {
		t.Error("ann may write to e")
	}
	bob, _ := sign(t, "bob", authority)
	if err := connect([]tls.Certificate{*bob}, x509Login).Ping(t.Context(), nil); err == nil {
		t.Error("bob, who is no user, logs in")
	}
}
