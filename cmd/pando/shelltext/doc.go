// Package shelltext reads what is typed into pando's shell and on its command line: statements such as
// db.flights.find({carrier: 'UA'}).limit(5), and values with unquoted keys, single quotes, regular expressions and constructors
// such as ObjectId("...") and ISODate("..."). It knows the shape of statements and nothing of what they do: values become Extended
// JSON, in which the members of documents keep their order.
//
// It promises to end, in time and memory that grow with the text only, whatever the text; nothing in it is evaluated, for there
// are no variables, operators or functions but the constructors. It never reads anything but its argument. What it does not
// understand is an error that wraps ErrSyntax and says at which character.
package shelltext
