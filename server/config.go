package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/pandodb/pando"
)

// Config says how to serve. Its zero value and a directory are enough.
type Config struct {
	Dir     string // of the database; it is created where there is none
	Addr    string // to listen on; default: localhost:27017. "none": no TCP
	Socket  string // path of a Unix socket to listen on too
	HTTP    string // address for /health and /metrics; empty: none
	Profile string // durable (the default) or relaxed
	Memory  int64  // bytes for caches and memtables; 0: an eighth of the machine's, or of the container's

	Auth   bool // clients have to log in
	NoAuth bool // they need not, although the address can be reached from other machines

	TLSCert string // PEM file with the certificate, and those between it and its authority
	TLSKey  string // PEM file with its key; default: the file of the certificate
	TLSCA   string // PEM file with the authorities of clients' certificates

	MaxConnections int    // default: 20,000
	MaxCursors     int    // open at once; default: 10,000
	SetName        string // name of the one-member replica set; default: rs0
	Advertise      string // the address that clients are told; default: the one listened on
	Standalone     bool   // present a standalone server: no transactions, no change streams
	History        int64  // bytes of log kept for change streams and the oplog; default: 256 MiB
	TestCommands   bool   // allow configureFailPoint, for the tests of drivers

	Shutdown func() // called when a client asks the server to end, which Close does; nil: clients cannot

	NotifySocket string // of systemd; NOTIFY_SOCKET
	Version      string // of the program
}

const (
	defaultAddr           = "localhost:27017"
	defaultMaxConnections = 20_000
	defaultHistory        = 256 << 20
)

// ErrConfig is what errors.Is finds when the configuration makes no sense.
var ErrConfig = errors.New("configuration")

// complete fills in the defaults and refuses contradictions.
func (c *Config) complete() error {
	if c.Dir == "" {
		return fmt.Errorf("%w: no directory is given", ErrConfig)
	}
	if c.Addr == "" {
		c.Addr = defaultAddr
	}
	if c.Addr == noTCP && c.Socket == "" {
		return fmt.Errorf("%w: neither an address nor a socket to listen on", ErrConfig)
	}
	for name, n := range map[string]int64{
		"memory": c.Memory, "history": c.History, "max-connections": int64(c.MaxConnections), "max-cursors": int64(c.MaxCursors),
	} {
		if n < 0 {
			return fmt.Errorf("%w: %s is negative: %d", ErrConfig, name, n)
		}
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = defaultMaxConnections
	}
	if c.History == 0 {
		c.History = defaultHistory
	}
	if (c.TLSKey != "" || c.TLSCA != "") && c.TLSCert == "" {
		return fmt.Errorf("%w: tls-key and tls-ca need tls-cert", ErrConfig)
	}
	if _, err := c.profile(); err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(c.Addr); c.Addr != noTCP && err != nil {
		return fmt.Errorf("%w: addr wants HOST:PORT or none, not %q", ErrConfig, c.Addr)
	}
	if c.Addr != noTCP && !c.Auth && !c.NoAuth && !isLoopback(c.Addr) {
		return fmt.Errorf("%w: %s can be reached from other machines: ask for logins with auth, or say no-auth", ErrConfig, c.Addr)
	}
	return nil
}

// noTCP is the address of a server that listens on its Unix socket only.
const noTCP = "none"

func (c *Config) profile() (pando.Profile, error) {
	for _, p := range []pando.Profile{pando.Durable, pando.Relaxed} {
		if c.Profile == p.String() || c.Profile == "" && p == pando.Durable {
			return p, nil
		}
	}
	return 0, fmt.Errorf("%w: profile is durable or relaxed, not %q", ErrConfig, c.Profile)
}

// isLoopback reports whether an address can only be reached from this machine.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// tls returns the TLS settings, nil for none.
func (c *Config) tls(read func(name string) ([]byte, error)) (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	cert, err := read(c.TLSCert)
	if err != nil {
		return nil, fmt.Errorf("tls-cert: %w", err)
	}
	key := cert
	if c.TLSKey != "" {
		if key, err = read(c.TLSKey); err != nil {
			return nil, fmt.Errorf("tls-key: %w", err)
		}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%w: tls-cert %s: %w", ErrConfig, c.TLSCert, err)
	}
	t := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if c.TLSCA != "" {
		ca, err := read(c.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("tls-ca: %w", err)
		}
		t.ClientCAs = x509.NewCertPool()
		if !t.ClientCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%w: tls-ca %s holds no certificate", ErrConfig, c.TLSCA)
		}
		t.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return t, nil
}
