import assert from "node:assert/strict";
import test from "node:test";
import { qrCode } from "../../src/connect/qr";

// Written by the package qrcode 1.5.4 with error correction M and the named mask: each row is a number in base 36, most significant
// module first.
const KNOWN = [
  { text: "http://box:8600/", mask: 3,
    rows: "jv2wv a739d ejejh ek7dp eixjx a6af5 jvfy7 2d4w eb2h7 ivlia 7dy3k 28r30 9l7pz 5fhbl 7scja ayuq1 ig3j 2975 jv8tb a7riq " +
    "ej7cg ektav ekm0u a5kr8 jv3i7" },
  { text: "http://192.168.178.123:8600/#/connect/open-webui?from=phone", mask: 0,
    rows: "3x1oxa7 20kikw1 2vcarml 2vgxuu5 2viqijh 20c3lfl 3xbl6yn 6s740 2mf4lci kdk2ub 1q062zr p76bf7 3mrbphm 39xx6px 1ij4mzn " +
    "1fk613m 1mzaq80 2z4xc9v 3xy299j 2z426j5 2munaoa y9ymsj 20a9pun 1lw46bl 24u7h0w g340r 3wyy3br 20778rd 2vihgxl 2vbrpa1 " +
    "2viwmu1 2075r1u 3xd20gb" },
  { text: "Zürich ☃ ".repeat(12), mask: 6,
    rows: "5iqz25di0v 2u3wud5hz5 41hdyi6gkd 412o9bu1jx 41f2xqdsnx 2thksujfpd 5iicojrr7j 76vkiy2o 3glkvenyxj 3ncwsp63f6 24jdbyez5 " +
    "18bgm2a1v3 4wmv83659k 49g2f9oj4x rtwurijhq 9g3sl5rns 2lfnhxx5ni 29x4tagwzq 1ivoyqfxcz 3q9uq8zspx 3fidarf41s 36x3ju52s " +
    "3t2knpoxdp 4cki6mhcf2 4dzrn0m15n 5e0k51i5g2 570tfrsdf4 4cdcthv3v2 226x243ki7 4v6xwadll1 4l4yaqn955 542g9hfl2t " +
    "2x6933z5th 4lhiawdzl4 33bivz4ul5 dhowjzde4 2i1r9zlmub dsern1hxy 1j3smlq9sn 2gdeywu0nx 4whrx27e9o gczxkrgz 5ikanwnx3w " +
    "2trrf9rlzk 41qqc76mt4 41hkvaputf 41d3auussa 2tl5p37zkj 5iloh30b7h" },
];

const rowsOf = (code: boolean[][]): string =>
  code.map((row) => row.reduce((bits, dark) => bits * 2n + (dark ? 1n : 0n), 0n).toString(36)).join(" ");

test("codes are those of another encoder, module by module", () => {
  for (const { text, mask, rows } of KNOWN) assert.equal(rowsOf(qrCode(text, mask)), rows, text);
});

test("without a mask one of the eight is taken, and a text that is too long is refused", () => {
  const eight = [0, 1, 2, 3, 4, 5, 6, 7].map((mask) => rowsOf(qrCode(KNOWN[0].text, mask)));
  assert.ok(eight.includes(rowsOf(qrCode(KNOWN[0].text))));
  assert.equal(qrCode("x".repeat(213)).length, 57);
  assert.throws(() => qrCode("x".repeat(214)), RangeError);
});
