// Character references of HTML as markdown knows them: numbers, and the names of HTML 4 (https://www.w3.org/TR/html401/sgml/entities.html).
// A name that is not among them stays as it is written.

// Names of U+00A0 to U+00FF in order.
const LATIN = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para " +
  "middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc " +
  "Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig " +
  "agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute " +
  "ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";
// Names of U+0391 to U+03A9 and, in small letters, U+03B1 to U+03C9; "-" has no name.
const GREEK = "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon Phi Chi Psi " +
  "Omega";
const OTHER = "quot=22 amp=26 apos=27 lt=3C gt=3E OElig=152 oelig=153 Scaron=160 scaron=161 Yuml=178 fnof=192 circ=2C6 tilde=2DC " +
  "sigmaf=3C2 thetasym=3D1 upsih=3D2 piv=3D6 ensp=2002 emsp=2003 thinsp=2009 zwnj=200C zwj=200D lrm=200E rlm=200F ndash=2013 " +
  "mdash=2014 lsquo=2018 rsquo=2019 sbquo=201A ldquo=201C rdquo=201D bdquo=201E dagger=2020 Dagger=2021 bull=2022 hellip=2026 " +
  "permil=2030 prime=2032 Prime=2033 lsaquo=2039 rsaquo=203A oline=203E frasl=2044 euro=20AC image=2111 weierp=2118 real=211C " +
  "trade=2122 alefsym=2135 larr=2190 uarr=2191 rarr=2192 darr=2193 harr=2194 crarr=21B5 lArr=21D0 uArr=21D1 rArr=21D2 dArr=21D3 " +
  "hArr=21D4 forall=2200 part=2202 exist=2203 empty=2205 nabla=2207 isin=2208 notin=2209 ni=220B prod=220F sum=2211 minus=2212 " +
  "lowast=2217 radic=221A prop=221D infin=221E ang=2220 and=2227 or=2228 cap=2229 cup=222A int=222B there4=2234 sim=223C cong=2245 " +
  "asymp=2248 ne=2260 equiv=2261 le=2264 ge=2265 sub=2282 sup=2283 nsub=2284 sube=2286 supe=2287 oplus=2295 otimes=2297 perp=22A5 " +
  "sdot=22C5 lceil=2308 rceil=2309 lfloor=230A rfloor=230B lang=2329 rang=232A loz=25CA spades=2660 clubs=2663 hearts=2665 diams=2666";

let names: Map<string, string> | undefined;

function table(): Map<string, string> {
  if (names) return names;
  names = new Map();
  LATIN.split(" ").forEach((name, at) => names!.set(name, String.fromCodePoint(0xa0 + at)));
  GREEK.split(" ").forEach((name, at) => {
    names!.set(name, String.fromCodePoint(0x391 + at)).set(name[0].toLowerCase() + name.slice(1), String.fromCodePoint(0x3b1 + at));
  });
  for (const pair of OTHER.split(" ")) names.set(pair.split("=")[0], String.fromCodePoint(parseInt(pair.split("=")[1], 16)));
  return names;
}

export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{1,31}));/g, (whole, decimal, hex, name) => {
    if (name) return table().get(name) ?? whole;
    const code = decimal ? parseInt(decimal, 10) : parseInt(hex, 16);
    return code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? "\uFFFD" : String.fromCodePoint(code);
  });
}
