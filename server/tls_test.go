package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/server/mongo"
)

// authority signs certificates.
type authority struct {
	t    testing.TB
	cert *tls.Certificate
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t, pool: x509.NewCertPool()}
	a.cert = a.sign("authority", "", time.Hour)
	a.pool.AddCert(a.cert.Leaf)
	return a
}

// sign makes a certificate for a host that ends after some time.
func (a *authority) sign(name, host string, lives time.Duration) *tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(lives),
		IsCA: a.cert == nil, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else if host != "" {
		c.DNSNames = []string{host}
	}
	issuer, signer := c, any(key)
	if a.cert != nil {
		issuer, signer = a.cert.Leaf, a.cert.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, issuer, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// file writes a certificate, with its key if that is asked for, as PEM.
func file(t testing.TB, c *tls.Certificate, withKey bool) string {
	t.Helper()
	var text bytes.Buffer
	err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
	if withKey {
		der, err2 := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
		err = errors.Join(err, err2, pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	name := filepath.Join(t.TempDir(), "pem")
	if err := errors.Join(err, os.WriteFile(name, text.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return name
}

// secured returns a server with TLS whose certificate is for 127.0.0.1, and its authority.
func secured(t *testing.T, tune func(o *mongo.Options)) (*Server, *authority) {
	a := newAuthority(t)
	s := startTuned(t, Config{
		Addr: "127.0.0.1:0", TLSCert: file(t, a.sign("server", "127.0.0.1", time.Hour), true), TLSCA: file(t, a.cert, false),
	}, tune)
	return s, a
}

// tap is a connection that keeps what goes through it, and can be told to do damage.
type tap struct {
	net.Conn
	mu       sync.Mutex
	in, out  []byte
	flipNext bool
}

func (c *tap) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in = append(c.in, p[:n]...)
	return n, err
}

func (c *tap) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.flipNext && len(p) > 0 {
		p = slices.Clone(p)
		p[len(p)-1] ^= 1
	}
	c.out = append(c.out, p...)
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// secure connects with TLS. The connection below the encryption is the second result.
func secure(t testing.TB, s *Server, c *tls.Config) (*peer, *tap) {
	t.Helper()
	raw, err := net.Dial("tcp", s.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	below := &tap{Conn: raw}
	return speak(t, tls.Client(below, c)), below
}

// TestTLS: honest clients are served, with their certificates and without.
func TestTLS(t *testing.T) {
	s, a := secured(t, nil)
	for name, certificates := range map[string][]tls.Certificate{"without a certificate": nil, "with one": {*a.sign("ann", "", time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			p, below := secure(t, s, &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1", Certificates: certificates})
			p.must("d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "x", Value: "the-secret"}}}))
			if reply := p.must("d", cmd("find", "c")); !strings.Contains(reply.String(), "the-secret") {
				t.Error(reply)
			}
			_ = p.Close()
			onlyRecords(t, "the client", below.out)
			onlyRecords(t, "the server", below.in)
		})
	}
	h := honestTLS(t, s, a)
	h.works()
}

// honestTLS is newHonest through TLS.
func honestTLS(t testing.TB, s *Server, a *authority) *honest {
	p, _ := secure(t, s, &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1"})
	p.must("admin", cmd("ping", 1))
	return &honest{peer: p}
}

// onlyRecords checks that bytes are records of TLS, and nothing of what was said can be read.
func onlyRecords(t *testing.T, who string, b []byte) {
	t.Helper()
	for _, word := range []string{"the-secret", "documents", "insert", "cursor", "hello", "admin"} {
		if bytes.Contains(b, []byte(word)) {
			t.Errorf("%s says %q in plain text", who, word)
		}
	}
	for len(b) > 0 {
		if len(b) < 5 { // the end was not read
			return
		}
		if b[0] < 20 || b[0] > 23 || b[1] != 3 {
			t.Errorf("%s sends what is no record of TLS: % x", who, b[:min(len(b), 16)])
			return
		}
		b = b[min(len(b), 5+int(b[3])<<8+int(b[4])):]
	}
}

// TestTLSRefused: who cannot be trusted, or does not trust, gets nothing but an alert.
func TestTLSRefused(t *testing.T) {
	s, a := secured(t, nil)
	h := honestTLS(t, s, a)
	stranger := newAuthority(t)
	with := func(c *tls.Certificate) *tls.Config {
		return &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1", GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }}
	}
	for _, test := range []struct {
		name   string
		config *tls.Config
		says   string
	}{
		{"TLS 1.0", &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, "protocol version"},
		{"TLS 1.1", &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "protocol version"},
		{"a client whose certificate has expired", with(a.sign("ann", "", -time.Minute)), "expired certificate"},
		{"a client whose certificate is somebody else's", with(stranger.sign("ann", "", time.Hour)), "certificate"},
		{"a client that signs for itself", with(stranger.cert), "certificate"},
		{"a client that wants another name", &tls.Config{RootCAs: a.pool, ServerName: "db.example.org"}, "db.example.org"},
		{"a client that trusts somebody else", &tls.Config{RootCAs: stranger.pool, ServerName: "127.0.0.1"}, "unknown authority"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, below := secure(t, s, test.config)
			_, err := p.Write(message(t, 1, "d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "x", Value: "the-secret"}}})))
			if err == nil { // with TLS 1.3 a client hears of it when it reads
				_, err = p.r.Read()
			}
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q is wanted: %v", test.says, err)
			}
			_ = p.Close()
			onlyRecords(t, "the client", below.out)
			onlyRecords(t, "the server", below.in)
		})
	}
	if n, _ := h.must("d", cmd("count", "c")).Lookup("n").Int32OK(); n != 0 {
		t.Errorf("%d documents of refused clients are stored", n)
	}
	h.works()
	left(t, s, 1)
}

// TestTLSExpiredServer: clients refuse a server whose certificate has expired.
func TestTLSExpiredServer(t *testing.T) {
	a := newAuthority(t)
	s := start(t, Config{Addr: "127.0.0.1:0", TLSCert: file(t, a.sign("server", "127.0.0.1", -time.Minute), true)})
	p, _ := secure(t, s, &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1"})
	_, err := p.Write(message(t, 1, "admin", cmd("ping", 1)))
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		t.Errorf("an expired certificate: %v", err)
	}
}

// TestPlainOnTLS: who speaks plainly to the port of TLS gets no answer but an alert, and neither does who says nothing.
func TestPlainOnTLS(t *testing.T) {
	t.Parallel()
	s, a := secured(t, hasty)
	h := honestTLS(t, s, a)
	peers := map[string]*peer{} // all at once, as some wait for the time for a handshake to pass
	for name, text := range map[string][]byte{
		"a command":         message(t, 1, "admin", cmd("hello", 1)),
		"HTTP":              []byte("GET / HTTP/1.1\r\n\r\n"),
		"nothing":           nil,
		"half a handshake":  {22, 3, 1, 2, 0, 1, 0},
		"a record too long": {22, 3, 1, 0xff, 0xff, 1, 0},
	} {
		peers[name] = newPeer(t, s)
		peers[name].sends(text...)
	}
	for name, p := range peers {
		t.Run(name, func(t *testing.T) {
			got, _ := io.ReadAll(p.Conn) // a reset ends it as well
			onlyRecords(t, "the server", got)
			if len(got) > 0 && got[0] != 21 {
				t.Errorf("the answer is no alert: % x", got)
			}
		})
	}
	h.works()
	left(t, s, 1)
}

// TestTLSDamage: a record that was changed on its way, or a message that was cut off, has no effect; and a connection that is cut off
// does not look like one that has ended.
func TestTLSDamage(t *testing.T) {
	s, a := secured(t, nil)
	h := honestTLS(t, s, a)
	insert := message(t, 9, "d", cmd("insert", "c", "documents", bson.A{bson.D{}}))
	config := &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1"}

	p, below := secure(t, s, config)
	p.must("admin", cmd("ping", 1))
	below.flipNext = true
	p.sends(insert...)
	if _, err := p.r.Read(); err == nil || !strings.Contains(err.Error(), "bad record MAC") {
		t.Errorf("a changed record: %v", err)
	}

	p, below = secure(t, s, config)
	p.must("admin", cmd("ping", 1))
	p.sends(insert[:len(insert)-1]...)
	_ = below.Conn.Close() // without the alert that ends a connection

	p, below = secure(t, s, config)
	p.must("admin", cmd("ping", 1))
	_ = below.Conn.(*net.TCPConn).CloseWrite()
	if _, err := p.r.Read(); err == nil {
		t.Error("an answer behind the end")
	}
	left(t, s, 1)
	if n, _ := h.must("d", cmd("count", "c")).Lookup("n").Int32OK(); n != 0 {
		t.Errorf("%d documents", n)
	}
	h.works()
}

// TestTLSEndIsAnnounced: a server that closes says so, so that its clients can tell the end from an attack.
func TestTLSEndIsAnnounced(t *testing.T) {
	a := newAuthority(t)
	s := start(t, Config{Addr: "127.0.0.1:0", TLSCert: file(t, a.sign("server", "127.0.0.1", time.Hour), true)})
	p, _ := secure(t, s, &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1"})
	p.must("admin", cmd("ping", 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the end of the connection: %v", err)
	}
}

// TestTLSConfigRefused: certificates that cannot be used are said when the server starts.
func TestTLSConfigRefused(t *testing.T) {
	a := newAuthority(t)
	good, other := file(t, a.sign("server", "127.0.0.1", time.Hour), true), file(t, a.sign("server", "127.0.0.1", time.Hour), true)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		c    Config
		says string
	}{
		{"a file that is not there", Config{TLSCert: "nowhere"}, "tls-cert"},
		{"a key that is not there", Config{TLSCert: good, TLSKey: "nowhere"}, "tls-key"},
		{"a key of another certificate", Config{TLSCert: good, TLSKey: other}, "does not match"},
		{"no key", Config{TLSCert: file(t, a.cert, false)}, "tls-cert"},
		{"no certificate", Config{TLSCert: empty}, "tls-cert"},
		{"an authority that is not there", Config{TLSCert: good, TLSCA: "nowhere"}, "tls-ca"},
		{"no authority", Config{TLSCert: good, TLSCA: empty}, "no certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.c.Dir, test.c.Addr = filepath.Join(t.TempDir(), "db"), "127.0.0.1:0"
			s, err := Start(test.c, nil)
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q is wanted: %v", test.says, err)
			}
		})
	}
}
