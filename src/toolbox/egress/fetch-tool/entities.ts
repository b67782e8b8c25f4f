/** The ones that pages really use. Others stay as they are written. */
const named: Readonly<Record<string, string>> = Object.assign(Object.create(null) as Record<string, string>, {
  ...{ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " ", shy: "", copy: "©", reg: "®", trade: "™" },
  ...{ hellip: "…", mdash: "—", ndash: "–", lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", sbquo: "‚", bdquo: "„" },
  ...{ laquo: "«", raquo: "»", bull: "•", middot: "·", sect: "§", para: "¶", deg: "°", plusmn: "±", times: "×" },
  ...{ divide: "÷", frac12: "½", frac14: "¼", frac34: "¾", euro: "€", pound: "£", yen: "¥", cent: "¢", micro: "µ" },
  ...{ larr: "←", rarr: "→", uarr: "↑", darr: "↓", harr: "↔", le: "≤", ge: "≥", ne: "≠", asymp: "≈", infin: "∞" },
  ...{
    sup1: "¹",
    sup2: "²",
    sup3: "³",
    ordm: "º",
    ordf: "ª",
    iexcl: "¡",
    iquest: "¿",
    check: "✓",
    ensp: " ",
    emsp: " ",
  },
  ...{ thinsp: " ", zwnj: "", zwj: "", auml: "ä", ouml: "ö", uuml: "ü", Auml: "Ä", Ouml: "Ö", Uuml: "Ü", szlig: "ß" },
  ...{ eacute: "é", egrave: "è", ecirc: "ê", agrave: "à", aacute: "á", acirc: "â", ccedil: "ç", ntilde: "ñ" },
  ...{
    iacute: "í",
    oacute: "ó",
    ocirc: "ô",
    uacute: "ú",
    aring: "å",
    Aring: "Å",
    aelig: "æ",
    oslash: "ø",
    Oslash: "Ø",
  },
});

/** Undoes `&amp;`, `&#65;`, `&#x41;` and the like. */
export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z][a-z0-9]{1,12}));?/gi, (whole, hex, decimal, name) => {
    if (typeof name === "string") return named[name] ?? whole;
    const code = typeof hex === "string" ? Number.parseInt(hex, 16) : Number(decimal);
    const isCharacter = code >= 0x20 && code <= 0x10_ffff && !(code >= 0xd800 && code <= 0xdfff) && code !== 0x7f;
    return isCharacter ? String.fromCodePoint(code) : " ";
  });
}
