import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { rejection } from "@sandpiper/core/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { freshDirectory } from "../../host/testing/shared.ts";
import { loadImages } from "./load-images.ts";

const { signal } = new AbortController();
const directory = freshDirectory("load");
let engine: Server;
let heard: string[];
beforeEach(async () => {
  heard = [];
  engine = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request.setEncoding("utf8")) body += piece;
    heard.push(`${request.method} ${request.url} ${body}`);
    const answers: Readonly<Record<string, string>> = {
      broken: '{"error":"no manifest"}',
      endless: "x".repeat(5 * 1024 * 1024),
    };
    response.end(answers[body] ?? "{}");
  }).listen(join(directory, "engine.sock"));
  await once(engine, "listening");
});
afterEach(() => void engine.close());

function load(...names: string[]): Promise<void> {
  const archives = names.map((name) => join(directory, name));
  return loadImages(`unix://${join(directory, "engine.sock")}`, { archives, signal });
}

it("loads image archives into an engine one after another", async () => {
  await writeFile(join(directory, "one.tar"), "first");
  await writeFile(join(directory, "two.tar"), "second");
  await load("one.tar", "two.tar");
  expect(heard).toEqual(["POST /images/load?quiet=1 first", "POST /images/load?quiet=1 second"]);
});

it("stops reading an answer that is longer than engines give", async () => {
  await writeFile(join(directory, "endless.tar"), "endless");
  expect(await rejection(load("endless.tar"))).toMatchObject({ message: expect.stringContaining("longer than") });
});

it("names the archive that is missing or that the engine rejects", async () => {
  await writeFile(join(directory, "bad.tar"), "broken");
  expect(await rejection(load("bad.tar"))).toMatchObject({
    reason: "image_archive",
    message: expect.stringContaining("no manifest"),
  });
  expect(await rejection(load("none.tar"))).toMatchObject({
    reason: "image_archive",
    message: expect.stringContaining("none.tar"),
  });
});
