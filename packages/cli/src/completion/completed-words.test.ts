import { describe, expect, it } from "vitest";
import type { Verb } from "../command/verb.ts";
import { verbTable } from "../verb-table.ts";
import { optionsOf, wordsToComplete } from "./completed-words.ts";

const load = (name: string) => (verbTable[name] as () => Promise<Verb>)();

describe("shell completion", () => {
  it("offers the actions of a verb and all their options", async () => {
    const keys = await load("keys");
    expect(wordsToComplete(keys)).toEqual(["create", "ls", "update", "revoke"]);
    expect(optionsOf(keys).map(({ name }) => name)).toEqual(expect.arrayContaining(["scope", "json"]));
  });

  it("can complete an option by name alone, since it takes the same values in every verb", async () => {
    const verbs = await Promise.all(Object.values(verbTable).map((loadVerb) => loadVerb()));
    const meanings = new Map<string, Set<string>>();
    for (const { name, value, choices } of verbs.flatMap(optionsOf)) {
      const meaning = JSON.stringify([value === undefined, choices]);
      meanings.set(name, (meanings.get(name) ?? new Set()).add(meaning));
    }
    expect([...meanings].filter(([, each]) => each.size > 1).map(([name]) => name)).toEqual([]);
  });
});
