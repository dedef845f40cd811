// Judges with ajv what constrained decoding let models write: each line of stdin is an answer of
// tests/grammar/call_walks.cc, as `validate_calls.py --lines FILE` keeps them. Every answer that the
// grammar ended must be calls of the tools that were offered, with arguments that their schemas
// allow, and at least 95 of 100 must have ended.
//   node judge_calls.mjs < LINES      (needs the packages ajv and ajv-formats)
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const draft7 = createRequire(import.meta.url)("ajv/dist/refs/json-schema-draft-07.json");

const ENDED_SHARE_LEAST = 0.95;
const WRONG_SHOWN_MAX = 10;

// Without a precision ajv divides floats: no decimal is a multiple of 1e-8.
const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 6 });
ajv.addMetaSchema(draft7);
addFormats(ajv);
// ajv-formats knows neither quoted names nor addresses in brackets (RFC 5321, section 4.1.2).
const email = ajv.formats.email;
ajv.addFormat("email", (text) => /^"([ !#-[\]-~]|\\[ -~])*"@/.test(text) || /@\[[^\]]+\]$/.test(text) || email.test(text));
const validators = new Map();

// null where ajv cannot read the schema, such as draft-07's lists in "items".
function validatorOf(schema) {
  const text = JSON.stringify(schema);
  if (!validators.has(text)) {
    try {
      validators.set(text, ajv.compile(JSON.parse(text)));
    } catch {
      validators.set(text, null);
    }
  }
  return validators.get(text);
}

// What is wrong with an answer that the grammar ended; "" for nothing.
function faultOf(answer, counts) {
  if (answer.finish_reason !== "tool_calls") return `finish_reason ${answer.finish_reason}`;
  if (answer.content) return `content ${JSON.stringify(answer.content)} beside the calls`;
  for (const call of answer.calls) {
    let value;
    try {
      value = JSON.parse(call.arguments);
    } catch (error) {
      return `arguments that are no JSON: ${error.message}`;
    }
    if (value === null || typeof value !== "object" || Array.isArray(value)) return "arguments that are no object";
    if (call.name === "the_other-tool2") {
      if (answer.choice === "named" || Object.keys(value).length > 0) return "a call of the other tool";
    } else if (call.name !== "the_tool") {
      return `a call of ${call.name}`;
    } else {
      const validate = validatorOf(answer.schema);
      if (validate === null) {
        counts.unjudged += 1;
      } else if (!validate(value)) {
        return ajv.errorsText(validate.errors);
      }
    }
  }
  return "";
}

const counts = { written: 0, ended: 0, wrong: 0, refused: 0, unjudged: 0 };
const families = new Map();
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (line === "") continue;
  const answer = JSON.parse(line);
  if (answer.refused !== undefined) {
    counts.refused += 1;
    continue;
  }
  const family = families.get(answer.family) ?? { written: 0, ended: 0, wrong: 0 };
  families.set(answer.family, family);
  counts.written += 1;
  family.written += 1;
  if (!answer.ended) continue;
  counts.ended += 1;
  family.ended += 1;
  const fault = faultOf(answer, counts);
  if (fault === "") continue;
  counts.wrong += 1;
  family.wrong += 1;
  if (counts.wrong > WRONG_SHOWN_MAX) continue;
  console.log(`${answer.family} ${answer.vocabulary} ${answer.choice}: ${JSON.stringify(answer.schema).slice(0, 300)}`);
  console.log(`  wrote ${JSON.stringify(answer.text).slice(0, 600)}\n  ${fault.slice(0, 300)}`);
}
for (const [name, family] of families) {
  console.log(`${name}: ${family.ended} of ${family.written} answers ended, ${family.wrong} wrong`);
}
console.log(
  `${counts.written} answers, ${counts.ended} ended by the grammar, ${counts.wrong} of them wrong; ` +
    `${counts.unjudged} calls with schemas that ajv does not read, ${counts.refused} schemas refused`,
);
const isEnough = counts.written > 0 && counts.ended >= ENDED_SHARE_LEAST * counts.written;
process.exit(counts.wrong === 0 && isEnough ? 0 : 1);
