import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readSourceFiles, repoDirectory } from "./source-files.ts";

const files = readSourceFiles();
const documents = files.filter(({ path }) => path.endsWith(".md"));

describe("the documents", () => {
  it("begin with a README of at most 150 lines", () => {
    const readme = files.find(({ path }) => path === "README.md");
    expect(readme?.text.trimEnd().split("\n").length).toBeLessThanOrEqual(150);
  });

  it("link only to existing files", () => {
    const links = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target = ""]) => ({ path, target })),
    );
    const local = links.filter(({ target }) => !/^[a-z]+:/.test(target));
    expect(local.filter(({ path, target }) => !existsSync(join(repoDirectory, dirname(path), target)))).toEqual([]);
  });

  it("number the decisions without gaps", () => {
    const numbers = documents
      .map(({ path }) => /^docs\/decisions\/(\d{4})-[a-z0-9-]+\.md$/.exec(path)?.[1])
      .filter(Boolean);
    expect(numbers.sort()).toEqual(numbers.map((_, index) => String(index + 1).padStart(4, "0")));
  });

  it("name only existing files in docs/seeds.md", () => {
    const text = documents.find(({ path }) => path === "docs/seeds.md")?.text ?? "";
    const roots: Record<string, string> = {
      C: "packages/core/src",
      P: "packages/providers/src",
      N: "packages/node/src",
    };
    const short = [...text.matchAll(/\b([CPN])`(\/[^`]+)`/g)].map(
      ([, root = "", path = ""]) => `${roots[root]}${path}`,
    );
    const full = [...text.matchAll(/`((?:packages|test|agent|scripts|clients|deploy)\/[^`]+)`/g)].map(
      ([, path = ""]) => path,
    );
    expect(short.length).toBeGreaterThan(50);
    expect([...short, ...full].filter((path) => !existsSync(join(repoDirectory, path)))).toEqual([]);
  });

  it("name only existing tests in SPECIFICATION.md", () => {
    const text = documents.find(({ path }) => path === "SPECIFICATION.md")?.text ?? "";
    const tests = [...text.matchAll(/`((?:packages|test|agent|scripts|bench|examples)\/[^`]+)`/g)].map(
      ([, path = ""]) => path,
    );
    expect(tests).not.toEqual([]);
    expect(tests.filter((path) => !existsSync(join(repoDirectory, path)))).toEqual([]);
  });
});

describe("no file", () => {
  const mentions = (pattern: RegExp) => files.filter(({ text }) => pattern.test(text)).map(({ path }) => path);

  it("names a directory of a developer's machine", () => {
    expect(mentions(/(?<![\w.~-])\/work\/|\/root\/(go|\.cargo|\.cache)\b/)).toEqual([]);
  });

  it("names a package registry's host, except the bundles of network rules and their tests", () => {
    const named = mentions(/registry\.[a-z]+\.org|proxy\.golang|index\.crates|static\.crates/);
    const isBundle = (path: string) => path.endsWith("/api/network-bundles.ts") || path.startsWith("test/network/");
    expect(named.filter((path) => !isBundle(path))).toEqual([]);
  });

  it("refers to a document outside the repository", () => {
    expect(mentions(/\bthe seeds\b|seed[-]notes|\bseed 00\d/i)).toEqual([]);
  });
});
