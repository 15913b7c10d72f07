package collation

import "strings"

// locales are the locales that MongoDB has.
const locales = "af am ar as az be bg bn bo bs bs_Cyrl ca chr cs cy da de de_AT dsb dz ee el en en_US en_US_POSIX eo es et fa " +
	"fa_AF fi fil fo fr fr_CA ga gl gu ha haw he hi hr hsb hu hy id ig is it ja ka kk kl km kn ko kok ky lb lkt ln lo " +
	"lt lv mk ml mn mr ms mt my nb ne nl nn om or pa pl ps pt ro ru se si sk sl smn sq sr sr_Latn sv sw ta te th to " +
	"tr ug uk ur vi wae yi yo zh zh_Hant zu"

// variants are the kinds of order that some locales have behind @collation=. All of them have search, eor and emoji.
const variants = "bn@traditional de@phonebook de_AT@phonebook es@traditional fi@traditional ja@unihan kn@traditional ko@searchjl ko@unihan " +
	"ln@phonetic ar@compat si@dictionary sv@standard vi@traditional zh@standard zh@stroke zh@unihan zh@zhuyin zh@big5han zh@gb2312han " +
	"zh_Hant@zhuyin"

// hasLocale reports whether MongoDB knows the locale: names are written exactly so.
func hasLocale(locale string) bool {
	name, variant, varied := strings.Cut(locale, "@collation=")
	if !isListed(locales, name) {
		return false
	}
	switch {
	case !varied || variant == "search" || variant == "eor" || variant == "emoji":
		return true
	}
	return isListed(variants, name+"@"+variant)
}

// isListed reports whether word is one of a list separated by spaces.
func isListed(list, word string) bool {
	for w := range strings.SplitSeq(list, " ") {
		if w == word {
			return true
		}
	}
	return false
}

// nearest returns the locale that a name with too many parts may have meant, and "" when there is none.
func nearest(locale string) string {
	for {
		i := strings.LastIndexAny(locale, "_@")
		if i < 0 {
			return ""
		}
		if locale = locale[:i]; hasLocale(locale) {
			return locale
		}
	}
}
