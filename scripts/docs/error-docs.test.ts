import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { errorReasons, isErrorReason } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { formatErrorDocs } from "./error-docs.ts";

const root = join(import.meta.dirname, "../..");

it("docs/errors.md matches the table of error reasons", () => {
  const written = readFileSync(join(root, "docs/errors.md"), "utf8");
  expect(written, "docs/errors.md is out of date: run `npm run docs`").toBe(formatErrorDocs());
});

/** The compiler checks the reasons in TypeScript; these tests check those of the agent. */
describe("the table of error reasons", () => {
  const agent = read("agent/src/**/*.rs").map((text) => text.replace(/#\[cfg\(test\)\][\s\S]*$/, ""));

  it("has every reason that the agent gives, with the same code", () => {
    const given = agent.flatMap((text) => [
      ...[...text.matchAll(WITH_CODE)].map(([, code = "", reason = ""]) => [reason, snakeCase(code)]),
      ...[...text.matchAll(INVALID)].map(([, reason = ""]) => [reason, "invalid_argument"]),
    ]);
    expect(given.length).toBeGreaterThan(60);
    const table = given.map(([reason = ""]) => [reason, isErrorReason(reason) ? errorReasons[reason].code : "none"]);
    expect(given).toEqual(table);
  });

  it("has only reasons that a program gives", () => {
    const isSource = (path: string) => !/\.test\.ts$|\/errors\/reasons\//.test(path);
    const texts = [...agent, ...read("packages/*/src/**/*.ts", isSource)].join("\n");
    const unused = Object.keys(errorReasons).filter((reason) => !texts.includes(`"${reason}"`));
    expect(unused).toEqual([]);
  });
});

const WITH_CODE = /Code::(\w+),\s*"(\w+)"/g;
const INVALID = /AgentError::(?:invalid\(|malformed\(-\d+,)\s*"(\w+)"/g;

function snakeCase(name: string): string {
  return name.replace(/(?<=.)[A-Z]/g, "_$&").toLowerCase();
}

function read(pattern: string, isWanted: (path: string) => boolean = () => true): string[] {
  const paths = globSync(pattern, { cwd: root }).filter(isWanted);
  return paths.map((path) => readFileSync(join(root, path), "utf8"));
}
