package query

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
)

// Document returns the tree as a filter, the way explain shows it as parsedQuery.
func (f *Filter) Document() bsoncore.Document { return Document(f.Root) }

// Document returns a node as a filter.
func Document(n Node) bsoncore.Document {
	b := bsoncore.NewDocumentBuilder()
	appendNode(b, n)
	return b.Build()
}

// appendNode appends the field that a node is.
func appendNode(b *bsoncore.DocumentBuilder, n Node) {
	switch n := n.(type) {
	case *And:
		if len(n.Children) > 0 {
			b.AppendArray("$and", documents(n.Children))
		}
		return
	case *Or:
		b.AppendArray("$or", documents(n.Children))
		return
	case *Nor:
		b.AppendArray("$nor", documents(n.Children))
		return
	case *Not:
		appendNot(b, n)
		return
	case *Expr:
		b.AppendValue("$expr", n.Spec)
		return
	case *JSONSchema:
		b.AppendDocument("$jsonSchema", n.Spec)
		return
	case *Sample:
		b.AppendDouble("$sampleRate", n.Rate)
		return
	case *Always:
		if n.Value {
			b.AppendInt32("$alwaysTrue", 1)
			return
		}
		b.AppendInt32("$alwaysFalse", 1)
		return
	}
	p, _ := pathOf(n)
	if near, ok := n.(*Near); ok {
		b.AppendDocument(p, near.Spec)
		return
	}
	b.AppendDocument(p, operatorsOf(n))
}

func documents(nodes []Node) bsoncore.Array {
	a := bsoncore.NewArrayBuilder()
	for _, n := range nodes {
		a.AppendDocument(Document(n))
	}
	return a.Build()
}

// appendNot shows the negation of what is about one field as $not, and any other as $nor.
func appendNot(b *bsoncore.DocumentBuilder, n *Not) {
	if p, ok := pathOf(n.Child); ok {
		b.AppendDocument(p, bsoncore.NewDocumentBuilder().AppendDocument("$not", operatorsOf(n.Child)).Build())
		return
	}
	b.AppendArray("$nor", documents([]Node{n.Child}))
}

// operatorsOf returns what a node asks of its field.
func operatorsOf(n Node) bsoncore.Document {
	b := bsoncore.NewDocumentBuilder()
	appendOperator(b, n)
	return b.Build()
}

func appendOperator(b *bsoncore.DocumentBuilder, n Node) {
	switch n := n.(type) {
	case *Comparison:
		if n.implied {
			b.AppendValue("$_internalExprEq", n.Value)
			return
		}
		b.AppendValue([...]string{Eq: "$eq", Lt: "$lt", Lte: "$lte", Gt: "$gt", Gte: "$gte"}[n.Op], n.Value)
	case *In:
		a := bsoncore.NewArrayBuilder()
		for _, v := range n.Values {
			a.AppendValue(v)
		}
		for _, r := range n.Regexes {
			a.AppendRegex(r.Pattern, r.Options)
		}
		b.AppendArray("$in", a.Build())
	case *Exists:
		b.AppendBoolean("$exists", true)
	case *Type:
		b.AppendArray("$type", n.operand())
	case *Regex:
		b.AppendString("$regex", n.Pattern)
		if n.Options != "" {
			b.AppendString("$options", n.Options)
		}
	case *Geo:
		b.AppendValue(n.Operator, n.Spec)
	case *Mod:
		b.AppendArray("$mod", bsoncore.NewArrayBuilder().AppendInt64(n.Divisor).AppendInt64(n.Remainder).Build())
	case *Size:
		b.AppendInt32("$size", int32(n.N))
	case *ElemMatch:
		b.AppendDocument("$elemMatch", Document(n.Child))
	case *ElemMatchValue:
		b.AppendDocument("$elemMatch", elementDocument(n.Children))
	case *Bits:
		a := bsoncore.NewArrayBuilder()
		for _, p := range n.Positions {
			a.AppendInt32(int32(p))
		}
		b.AppendArray([...]string{"$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear"}[n.Op], a.Build())
	}
}

// elementDocument shows conditions on an element itself: as the fields of one document, or under $and where an operator is there twice.
func elementDocument(nodes []Node) bsoncore.Document {
	all := bsoncore.NewDocumentBuilder()
	each := bsoncore.NewArrayBuilder()
	seen := map[string]bool{}
	twice := false
	for _, n := range nodes {
		one := bsoncore.NewDocumentBuilder()
		appendElement(one, n)
		doc := one.Build()
		for e := path.ElementsOf(doc); ; {
			name, v, ok := e.Next()
			if !ok {
				break
			}
			twice = twice || seen[string(name)]
			seen[string(name)] = true
			all.AppendValue(string(name), v)
		}
		each.AppendDocument(doc)
	}
	if twice {
		return bsoncore.NewDocumentBuilder().AppendArray("$and", each.Build()).Build()
	}
	return all.Build()
}

// appendElement appends a condition on an element itself.
func appendElement(b *bsoncore.DocumentBuilder, n Node) {
	switch n := n.(type) {
	case *Not:
		inner := bsoncore.NewDocumentBuilder()
		appendElement(inner, n.Child)
		b.AppendDocument("$not", inner.Build())
	case *And:
		for e := path.ElementsOf(elementDocument(n.Children)); ; {
			name, v, ok := e.Next()
			if !ok {
				break
			}
			b.AppendValue(string(name), v)
		}
	case *Always:
		if !n.Value {
			b.AppendArray("$in", bsoncore.NewArrayBuilder().Build())
		}
	default:
		appendOperator(b, n)
	}
}

// operand returns the types as numbers, and the four kinds of numbers as "number" where that was asked for.
func (n *Type) operand() bsoncore.Array {
	a := bsoncore.NewArrayBuilder()
	if n.Number {
		a.AppendString("number")
	}
	for _, t := range n.Types {
		number := t == bsoncore.TypeDouble || t == bsoncore.TypeInt32 || t == bsoncore.TypeInt64 || t == bsoncore.TypeDecimal128
		if n.Number && number {
			continue
		}
		code := int32(t)
		if t == bsoncore.TypeMinKey {
			code = -1
		}
		a.AppendInt32(code)
	}
	return a.Build()
}

// String returns the tree as a filter in Extended JSON.
func (f *Filter) String() string { return f.Document().String() }
