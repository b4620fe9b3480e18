import { readdirSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { SandboxError } from "@sandpiper/core";
import fc from "fast-check";
import { configFields } from "../../../packages/node/src/config/config-field.ts";
import { loadNodeConfig } from "../../../packages/node/src/config/load-node-config.ts";
import { nodeConfigSchema } from "../../../packages/node/src/config/node-config.ts";
import { damaged, damages, jsonText, mutated } from "./malformed-json.ts";
import type { FuzzTarget } from "./run-fuzz.ts";
import { schemaOf, validValues } from "./valid-values.ts";

export interface ConfigInput {
  readonly file: Buffer;
  readonly env: Readonly<Record<string, string>>;
  readonly argv: readonly string[];
}

const LONGEST_MESSAGE = 20_000;

const hostileTexts = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "NaN",
    "Infinity",
    "-1",
    "1e400",
    "99999999999999999999",
    "0x10",
    "none",
    "null",
    "true",
    "../..",
    "/\u0000",
    "\ud800",
    "[",
    "{}",
    "[[[[",
    '{"__proto__":1}',
    ",,,",
    "::",
    "http://[",
    "s3://",
    "file://",
    "gs:///",
    "=",
    "x".repeat(10_000),
    "$(true)",
    "%00",
  ),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.integer().map(String),
  fc.json({ maxDepth: 2 }),
);

const names = configFields.map(({ env }) => env);
const flags = configFields.map(({ flag }) => `--${flag}`);
const mistyped = (known: readonly string[]) =>
  fc
    .tuple(fc.constantFrom(...known), fc.nat(30), fc.string({ maxLength: 2 }))
    .map(([name, at, text]) => name.slice(0, at) + text + name.slice(at + 1));

const variables = fc.array(
  fc.tuple(
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...names, "SANDPIPER_CONFIG") },
      { weight: 1, arbitrary: mistyped(names) },
    ),
    hostileTexts,
  ),
  { maxLength: 3 },
);

const words = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.tuple(fc.constantFrom(...flags, "--config"), hostileTexts).map(([flag, text]) => [`${flag}=${text}`]),
  },
  { weight: 3, arbitrary: fc.tuple(fc.constantFrom(...flags), hostileTexts).map(([flag, text]) => [flag, text]) },
  { weight: 1, arbitrary: mistyped(flags).map((flag) => [flag]) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ["--"],
      ["-"],
      ["-x"],
      ["--=1"],
      ["--__proto__=1"],
      ["--constructor"],
      ["--no-port"],
      ["start"],
      ["--port"],
      ["-p", "1"],
    ),
  },
);

const files = fc
  .tuple(
    fc.oneof(
      { weight: 1, arbitrary: validValues(schemaOf(nodeConfigSchema)) },
      { weight: 4, arbitrary: mutated(validValues(schemaOf(nodeConfigSchema))) },
    ),
    damages,
  )
  .map(([value, damage]) => damaged(jsonText(value), damage));

const nothing = fc.constant(Buffer.from("{}"));

const configInputs: fc.Arbitrary<ConfigInput> = fc.oneof(
  fc.record({ file: files, env: fc.constant({}), argv: fc.constant([]) }),
  fc.record({ file: nothing, env: variables.map(Object.fromEntries), argv: fc.constant([]) }),
  fc.record({ file: nothing, env: fc.constant({}), argv: fc.array(words, { maxLength: 3 }).map((all) => all.flat()) }),
);

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/** Settings from a file, the environment and the command line, in this process. */
export function configTarget(): FuzzTarget<ConfigInput> {
  const load = ({ file, env, argv }: ConfigInput) =>
    loadNodeConfig({ argv, env: { SANDPIPER_HOME: "/home/fuzz", ...env }, readFile: async () => file.toString() });
  return {
    inputs: configInputs,
    async send(input) {
      try {
        await load(input);
        return "accepted";
      } catch (thrown) {
        checkRefusal(thrown);
        return "refused";
      }
    },
    async holdings() {
      collectGarbage();
      return {
        heapBytes: process.memoryUsage().heapUsed,
        handles: process.getActiveResourcesInfo().length,
        openFiles: readdirSync("/proc/self/fd").length,
        databaseBytes: 0,
        records: 0,
      };
    },
    async useOrdinarily() {
      const { port } = await load({ file: Buffer.from('{"port": 4800}'), env: {}, argv: [] });
      if (port !== 4800) throw new Error(`an ordinary file set the port to ${port}`);
    },
  };
}

/** The error names a setting, or the file or argument that is none, and the problem. */
function checkRefusal(thrown: unknown): void {
  if (!(thrown instanceof SandboxError)) throw thrown;
  const { reason, message, hint = "" } = thrown;
  const problem = (what: string) => new Error(`${what}: ${message.slice(0, 1000)}`);
  if (reason !== "invalid_config") throw problem(`reason ${reason}`);
  if (message.length > LONGEST_MESSAGE) throw problem(`a message of ${message.length} characters`);
  if (/\n\s+at /.test(message)) throw problem("a stack trace");
  const [, text = ""] = /^invalid configuration: (.+)$/s.exec(message) ?? [];
  if (text.trim() === "" || hint === "") throw problem("no problem or next step");
  const named = [
    ...configFields.flatMap(({ key, env, flag }) => [key, env, `--${flag}`]),
    "unknown",
    "argument",
    "file",
    "JSON",
    "has no value",
    "is not an object",
  ];
  if (!named.some((name) => text.includes(name))) throw problem("no setting is named");
}
