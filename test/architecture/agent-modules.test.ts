import { describe, expect, it } from "vitest";
import { findCycles } from "./cycles.ts";
import type { Import } from "./imports.ts";
import { readSourceFiles } from "./source-files.ts";

/** The modules of the agent. Each uses only those before it. */
const order = [
  "error",
  "args",
  "os",
  "redirect",
  "wire",
  "calls",
  "files",
  "watch",
  "process",
  "init",
  "net",
  "agent",
  "methods",
  "channel",
  "startup",
  "main",
];

const files = readSourceFiles()
  .filter(({ path }) => path.startsWith("agent/src/") && !path.startsWith("agent/src/bin/"))
  .map(({ path, text }) => ({ path: path.slice("agent/src/".length), text }))
  .filter(({ path }) => path !== "lib.rs");
const paths = new Set(files.map(({ path }) => path));
/** With paths from `agent/src`. */
const uses = files.flatMap(({ path, text }) => usesOf(path, text));

describe("the agent's modules", () => {
  it("are all in the table", () => {
    expect([...new Set([...paths].map(moduleOf))].sort()).toEqual([...order].sort());
    expect(uses.length).toBeGreaterThan(200);
  });

  it("use only modules before them in the order", () => {
    expect(uses.filter((use) => !followsOrder(use)).map(({ from, to }) => `${from} uses ${to}`)).toEqual([]);
  });

  it("have no files that use each other, directly or through others", () => {
    expect(findCycles(uses)).toEqual([]);
  });
});

describe("the check of the agent's modules", () => {
  it("sees a module that uses a later one, in every form of a path", () => {
    const text = `
      use crate::channel::session;
      use crate::os::{check, log::{self, warn}};
      fn run() { crate::methods::run(); super::journal::open() }
      // crate::agent::Agent in a comment does not count`;
    const found = usesOf("process/launch.rs", text);
    expect(found.map(({ to }) => to)).toEqual([
      "channel/session.rs",
      "os/mod.rs",
      "os/log.rs",
      "os/log.rs",
      "methods/mod.rs",
      "process/journal.rs",
    ]);
    expect(
      usesOf("channel/mod.rs", "mod serial;\nmod session;\nfn serve() { session::serve() }").map(({ to }) => to),
    ).toEqual(["channel/session.rs"]);
    expect(found.filter((use) => !followsOrder(use)).map(({ to }) => to)).toEqual([
      "channel/session.rs",
      "methods/mod.rs",
    ]);
  });
});

function usesOf(path: string, text: string): Import[] {
  const code = text.replace(/\/\/.*$/gm, "");
  // In a module of unit tests `super` is the file itself.
  const withoutTests = code.split(/#\[cfg\(test\)\]\s*mod \w+ \{/)[0] ?? "";
  const names = [
    ...pathsIn(code, "crate").concat(pathsIn(code, "sandpiper_agent")),
    ...pathsIn(withoutTests, "super").map((inner) => [...parentOf(path), ...inner]),
    ...childrenIn(withoutTests).map((child) => [...selfOf(path), child]),
  ];
  return names.map((name) => ({ from: path, to: fileOf(name) })).filter(({ to }) => to !== path && to !== "lib.rs");
}

/** The paths after `root::`. */
function pathsIn(code: string, root: string): string[][] {
  return [...code.matchAll(new RegExp(`\\b${root}::((?:\\w+::)*)(\\w+|\\{)`, "g"))].flatMap((match) => {
    const [all, middle = "", last = ""] = match;
    const names = middle.split("::").filter(Boolean);
    if (last !== "{") return [[...names, last]];
    return expandBraces(code.slice(match.index + all.length)).map((inner) => [...names, ...inner]);
  });
}

/** The child modules that a `mod.rs` not only declares but also uses. */
function childrenIn(code: string): string[] {
  const declared = [...code.matchAll(/\bmod (\w+);/g)].map(([, name = ""]) => name);
  return declared.filter((name) => new RegExp(`(?<!::)\\b${name}::`).test(code));
}

/** The paths in `a, b::{self, C}}…`, up to the brace that closes the list. */
function expandBraces(text: string): string[][] {
  const found: string[][] = [];
  const prefixes: string[][] = [[]];
  let names: string[] = [];
  for (const [token] of text.matchAll(/\w+|[{},]/g)) {
    const prefix = prefixes.at(-1) ?? [];
    if (token === "{") {
      prefixes.push([...prefix, ...names]);
      names = [];
    } else if (token === "," || token === "}") {
      if (names.length > 0) found.push([...prefix, ...names]);
      names = [];
      if (token === "}") prefixes.pop();
      if (prefixes.length === 0) break;
    } else {
      names.push(token);
    }
  }
  return found;
}

function selfOf(path: string): string[] {
  return path.replace(/(\/mod)?\.rs$/, "").split("/");
}

function parentOf(path: string): string[] {
  return selfOf(path).slice(0, -1);
}

/** The file of the longest module path that `names` begins with. */
function fileOf(names: readonly string[]): string {
  for (let length = names.length; length > 0; length--) {
    const module = names.slice(0, length).join("/");
    const file = [`${module}.rs`, `${module}/mod.rs`].find((candidate) => paths.has(candidate));
    if (file !== undefined) return file;
  }
  return "lib.rs";
}

function moduleOf(path: string): string {
  return (path.split("/")[0] ?? "").replace(/\.rs$/, "");
}

function followsOrder({ from, to }: Import): boolean {
  return order.indexOf(moduleOf(to)) <= order.indexOf(moduleOf(from));
}
