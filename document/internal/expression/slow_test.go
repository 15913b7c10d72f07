//go:build slow

package expression

// longExpression is how many parts the expressions have of which each may take as long as the others.
const longExpression = 300_000
