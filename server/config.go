package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/pandodb/pando"
)

// Config says how to serve. Its zero value and a directory are enough. The names in a configuration file are those of the tags.
type Config struct {
	Dir     string `toml:"dir"`     // of the database; it is created where there is none
	Addr    string `toml:"addr"`    // to listen on; default: localhost:27017. "none": no TCP
	Socket  string `toml:"socket"`  // path of a Unix socket to listen on too
	HTTP    string `toml:"http"`    // address for /health and /metrics; empty: none
	Profile string `toml:"profile"` // durable (the default) or relaxed
	Memory  int64  `toml:"memory"`  // bytes for caches and memtables; 0: an eighth of the machine's

	Auth   bool `toml:"auth"`    // clients have to log in
	NoAuth bool `toml:"no-auth"` // they need not, although the address can be reached from other machines

	TLSCert string `toml:"tls-cert"` // PEM file with the certificate, and those between it and its authority
	TLSKey  string `toml:"tls-key"`  // PEM file with its key; default: the file of the certificate
	TLSCA   string `toml:"tls-ca"`   // PEM file with the authorities of clients' certificates

	MaxConnections int    `toml:"max-connections"` // default: 20,000
	MaxCursors     int    `toml:"max-cursors"`     // open at once; default: 10,000
	SetName        string `toml:"replica-set"`     // name of the one-member replica set; default: rs0
	Advertise      string `toml:"advertise"`       // the address that clients are told; default: the one listened on
	Standalone     bool   `toml:"standalone"`      // present a standalone server: no transactions, no change streams
	History        int64  `toml:"history"`         // bytes of log kept for change streams and the oplog; default: 256 MiB
	TestCommands   bool   `toml:"test-commands"`   // allow configureFailPoint, for the tests of drivers

	NotifySocket string `toml:"-"` // of systemd; NOTIFY_SOCKET
	Version      string `toml:"-"` // of the program
}

const (
	defaultAddr           = "localhost:27017"
	defaultMaxConnections = 20_000
	defaultHistory        = 256 << 20
)

// ErrConfig is what errors.Is finds when the configuration makes no sense.
var ErrConfig = errors.New("configuration")

// ParseConfig reads a configuration file, in TOML, over what c says already.
func (c *Config) ParseConfig(text []byte) error {
	d := toml.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		var strict *toml.StrictMissingError
		if errors.As(err, &strict) {
			return fmt.Errorf("%w: unknown name:\n%s", ErrConfig, strict.String())
		}
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

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

// Over returns c with what flags set in its place.
func (c Config) Over(flags Config) Config {
	for _, s := range []struct{ to, from *string }{
		{&c.Dir, &flags.Dir}, {&c.Addr, &flags.Addr}, {&c.Socket, &flags.Socket}, {&c.HTTP, &flags.HTTP}, {&c.Profile, &flags.Profile},
		{&c.TLSCert, &flags.TLSCert}, {&c.TLSKey, &flags.TLSKey}, {&c.TLSCA, &flags.TLSCA}, {&c.SetName, &flags.SetName},
		{&c.Advertise, &flags.Advertise},
	} {
		if *s.from != "" {
			*s.to = *s.from
		}
	}
	if flags.Memory != 0 {
		c.Memory = flags.Memory
	}
	if flags.History != 0 {
		c.History = flags.History
	}
	if flags.MaxConnections != 0 {
		c.MaxConnections = flags.MaxConnections
	}
	if flags.MaxCursors != 0 {
		c.MaxCursors = flags.MaxCursors
	}
	c.Auth = c.Auth || flags.Auth
	c.NoAuth = c.NoAuth || flags.NoAuth
	c.Standalone = c.Standalone || flags.Standalone
	c.TestCommands = c.TestCommands || flags.TestCommands
	return c
}
