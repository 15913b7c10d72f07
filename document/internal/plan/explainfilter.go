package plan

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/query"
)

// node returns a node of a filter as a document, the way explain shows it: every condition with its operator.
func node(n query.Node) bsoncore.Document {
	b := bsoncore.NewDocumentBuilder()
	switch n := n.(type) {
	case *query.And:
		if len(n.Children) > 0 {
			b.AppendArray("$and", nodes(n.Children))
		}
	case *query.Or:
		b.AppendArray("$or", nodes(n.Children))
	case *query.Nor:
		b.AppendArray("$nor", nodes(n.Children))
	case *query.Not:
		negation(b, n)
	case *query.ElemMatch:
		b.AppendDocument(n.Path, single("$elemMatch", value(node(n.Child))))
	case *query.ElemMatchValue:
		inner := bsoncore.NewDocumentBuilder()
		for _, child := range n.Children {
			merge(inner, operators(child))
		}
		b.AppendDocument(n.Path, single("$elemMatch", value(inner.Build())))
	case *query.Expr:
		b.AppendValue("$expr", n.Spec)
	case *query.JSONSchema:
		b.AppendDocument("$jsonSchema", n.Spec)
	case *query.Sample:
		b.AppendDouble("$sampleRate", n.Rate)
	case *query.Always:
		name := "$alwaysFalse"
		if n.Value {
			name = "$alwaysTrue"
		}
		b.AppendInt32(name, 1)
	default:
		if path, ok := pathOf(n); ok {
			b.AppendDocument(path, operators(n))
		}
	}
	return b.Build()
}

func value(d bsoncore.Document) bsoncore.Value {
	return bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: d}
}

func single(name string, v bsoncore.Value) bsoncore.Document {
	return bsoncore.NewDocumentBuilder().AppendValue(name, v).Build()
}

// merge appends the elements of d.
func merge(b *bsoncore.DocumentBuilder, d bsoncore.Document) {
	elements, err := d.Elements()
	if err != nil {
		return
	}
	for _, e := range elements {
		b.AppendValue(e.Key(), e.Value())
	}
}

func nodes(list []query.Node) bsoncore.Array {
	b := bsoncore.NewArrayBuilder()
	for _, n := range list {
		b.AppendDocument(node(n))
	}
	return b.Build()
}

// negation describes a $not: of one path before the operator, of several as a $nor.
func negation(b *bsoncore.DocumentBuilder, n *query.Not) {
	if path, ok := pathOf(n.Child); ok {
		switch n.Child.(type) {
		case *query.And, *query.Or, *query.Not:
		default:
			b.AppendDocument(path, single("$not", value(operators(n.Child))))
			return
		}
	}
	b.AppendArray("$nor", nodes([]query.Node{n.Child}))
}

// operators returns what a condition asks of its path.
func operators(n query.Node) bsoncore.Document {
	switch n := n.(type) {
	case *query.Comparison:
		return single([]string{"$eq", "$lt", "$lte", "$gt", "$gte"}[n.Op], n.Value)
	case *query.In:
		list := bsoncore.NewArrayBuilder()
		for _, v := range n.Values {
			list.AppendValue(v)
		}
		for _, r := range n.Regexes {
			list.AppendRegex(r.Pattern, r.Options)
		}
		return bsoncore.NewDocumentBuilder().AppendArray("$in", list.Build()).Build()
	case *query.Exists:
		return bsoncore.NewDocumentBuilder().AppendBoolean("$exists", true).Build()
	case *query.Regex:
		b := bsoncore.NewDocumentBuilder().AppendString("$regex", n.Pattern)
		if n.Options != "" {
			b.AppendString("$options", n.Options)
		}
		return b.Build()
	case *query.Type:
		return types(n)
	case *query.Mod:
		list := bsoncore.NewArrayBuilder().AppendValue(number(n.Divisor)).AppendValue(number(n.Remainder))
		return bsoncore.NewDocumentBuilder().AppendArray("$mod", list.Build()).Build()
	case *query.Size:
		return single("$size", number(n.N))
	case *query.Bits:
		list := bsoncore.NewArrayBuilder()
		for _, p := range n.Positions {
			list.AppendValue(number(int64(p)))
		}
		name := []string{"$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear"}[n.Op]
		return bsoncore.NewDocumentBuilder().AppendArray(name, list.Build()).Build()
	case *query.Not:
		return single("$not", value(operators(n.Child)))
	case *query.ElemMatch, *query.ElemMatchValue:
		path, _ := pathOf(n)
		if inner, ok := node(n).Lookup(path).DocumentOK(); ok {
			return inner
		}
	}
	return bsoncore.NewDocumentBuilder().Build()
}

// types returns a $type: "number" for all of them, and else the numbers of the types.
func types(n *query.Type) bsoncore.Document {
	list := bsoncore.NewArrayBuilder()
	if n.Number {
		list.AppendString("number")
	}
	for _, t := range n.Types {
		if n.Number && isNumber(t) {
			continue
		}
		code := int64(t)
		if t == bsoncore.TypeMinKey {
			code = -1
		}
		list.AppendValue(number(code))
	}
	return bsoncore.NewDocumentBuilder().AppendArray("$type", list.Build()).Build()
}
