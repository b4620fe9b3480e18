import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { verbTable } from "../verb-table.ts";
import { programHelp, verbHelp } from "./help-text.ts";
import type { Verb } from "./verb.ts";

const verbs = await Promise.all(Object.values(verbTable).map((load) => load()));
const all = verbs.flatMap((verb) => [verb, ...(verb.actions ?? [])]);

describe("the program's help", () => {
  it("lists every verb exactly once", () => {
    const names = [...programHelp(verbs, 80).matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name]) => name);
    expect(names.toSorted()).toEqual(Object.keys(verbTable).toSorted());
  });

  it.each([80, 120])("fits into %i columns", (width) => {
    for (const line of plain(programHelp(verbs, width)).split("\n")) expect(line.length).toBeLessThanOrEqual(width);
  });
});

describe.each(all.map((verb) => [verb.name, verb] as const))("the help of sandpiper %s", (_, verb) => {
  it("begins with its usage and an imperative summary", () => {
    const [usage, , summary] = plain(verbHelp(verb, 80)).split("\n");
    expect(usage).toMatch(new RegExp(`^Usage: sandpiper ${verb.name}( |$)`));
    expect(summary).toMatch(/^[A-Z].*\.$/);
    expect(verb.summary).toMatch(/^[a-z]+ .*[^.]$/);
  });

  it("fits into 80 columns, except for examples", () => {
    const text = plain(verbHelp({ ...verb, examples: [] }, 80));
    for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  });
});

describe("an option in the help", () => {
  const option = { name: "pull", short: "p", value: "WHEN", choices: ["missing", "never"], default: "missing" };
  const verb = { name: "run", summary: "run it", options: [{ ...option, summary: "when to pull" }] } as unknown as Verb;

  it("shows its short form, value, choices and default, aligned with the others", () => {
    expect(plain(verbHelp(verb, 80))).toContain(
      '  -p, --pull WHEN  when to pull: missing or never (default "missing")\n  -h, --help       show this help\n',
    );
  });

  it("continues long text below its own column", () => {
    expect(plain(verbHelp(verb, 50))).toContain(
      '  -p, --pull WHEN  when to pull: missing or never\n                   (default "missing")\n',
    );
  });
});

function plain(text: string): string {
  return stripVTControlCharacters(text);
}
