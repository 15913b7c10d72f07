package mongo

import (
	"net"
	"net/netip"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// restriction says from where, and to where, a client may be connected to log in: one of the sources, and one of the servers.
type restriction struct {
	ClientSource  []string `bson:"clientSource,omitempty"`
	ServerAddress []string `bson:"serverAddress,omitempty"`
}

// restrictions reads authenticationRestrictions.
func (r *request) restrictions() ([]restriction, error) {
	const field = "authenticationRestrictions"
	if !r.has(field) {
		return nil, nil
	}
	docs, err := r.documents(field)
	if err != nil {
		return nil, err
	}
	list := []restriction{}
	for _, doc := range docs {
		elements, err := doc.Elements()
		if err != nil {
			return nil, document.NewError(document.FailedToParse, "%s.%s: %v", r.name, field, err)
		}
		var x restriction
		for _, e := range elements {
			to := map[string]*[]string{"clientSource": &x.ClientSource, "serverAddress": &x.ServerAddress}[e.Key()]
			if to == nil {
				return nil, document.NewError(document.Code(12), "'%s' is not a recognized authentication restriction", printable(e.Key()))
			}
			if *to, err = addresses(e.Value()); err != nil {
				return nil, err
			}
		}
		list = append(list, x)
	}
	return list, nil
}

// addresses reads an address or range, or a list of them.
func addresses(v bsoncore.Value) ([]string, error) {
	values := []bsoncore.Value{v}
	if array, isArray := v.ArrayOK(); isArray {
		var err error
		if values, err = array.Values(); err != nil {
			return nil, document.NewError(document.FailedToParse, "authenticationRestrictions: %v", err)
		}
	}
	var list []string
	for _, v := range values {
		text, _ := v.StringValueOK()
		if _, ok := addressRange(text); !ok {
			return nil, document.NewError(document.BadValue, "'%s' is not an address, nor a range of addresses", printable(text))
		}
		list = append(list, text)
	}
	return list, nil
}

// addressRange reads an address, or a range in CIDR notation.
func addressRange(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

// within reports whether an end of a connection lies in one of the ranges. What has no address, as a Unix socket, lies in none.
func within(end net.Addr, ranges []string) bool {
	at, err := netip.ParseAddrPort(end.String())
	if err != nil {
		return false
	}
	for _, text := range ranges {
		if p, ok := addressRange(text); ok && p.Contains(at.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// mayEnter reports whether the connection meets the restrictions: of each list at least one.
func (c *conn) mayEnter(lists [][]restriction) bool {
	for _, list := range lists {
		met := len(list) == 0
		for _, x := range list {
			met = met || (len(x.ClientSource) == 0 || within(c.net.RemoteAddr(), x.ClientSource)) &&
				(len(x.ServerAddress) == 0 || within(c.net.LocalAddr(), x.ServerAddress))
		}
		if !met {
			return false
		}
	}
	return true
}

// isLocal reports whether the client is on this machine.
func (c *conn) isLocal() bool {
	switch a := c.net.RemoteAddr().(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}
