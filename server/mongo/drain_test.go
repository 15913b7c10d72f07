package mongo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"testing"
	"time"
)

// TestDrainBesideClientsThatDoNotRead: over TLS a client is told that its connection ends, which takes as long as it likes, up to five seconds. The
// server does not tell one after the other, and those who have not heard of it when it closes are cut off.
func TestDrainBesideClientsThatDoNotRead(t *testing.T) {
	t.Parallel() // it waits
	s := newServer(t, nil)
	authority := sign(t, pkix.Name{CommonName: "authority"}, nil)
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	server := sign(t, pkix.Name{CommonName: "server"}, authority)
	const clients, toldIn = 4, 5 * time.Second
	for range clients {
		near, far := net.Pipe()
		c := serveOn(t, s, tls.Client(near, &tls.Config{RootCAs: pool, ServerName: "server"}), tls.Server(far, &tls.Config{Certificates: []tls.Certificate{*server}}))
		c.must("admin", cmd("ping", 1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	_ = s.Drain(ctx) // it did not come to its end
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 2*toldIn {
		t.Errorf("it took %v", took)
	}
}
