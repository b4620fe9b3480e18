import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { eventKindSchema } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { webhookSignature } from "../webhooks/post-webhook.ts";
import { NodeMetrics } from "./node-metrics.ts";

const document = await readFile(join(import.meta.dirname, "../../../../docs/observability.md"), "utf8");

describe("docs/observability.md", () => {
  it("names exactly Sandpiper's metrics", async () => {
    const { text } = await new NodeMetrics().render();
    const exported = [...text.matchAll(/^# TYPE (sandpiper_\w+) /gm)].map(([, name]) => name);
    const named = [...document.matchAll(/`(sandpiper_\w+)`/g)].map(([, name]) => name);
    expect(named.toSorted()).toEqual(exported.toSorted());
  });

  it("names exactly the kinds of events", () => {
    const [, table = ""] = /\n\| kind \| when \|\n(.*?)\n\n/s.exec(document) ?? [];
    const rows = table.split("\n").map((row) => row.split(" | ")[0] ?? "");
    const named = rows.flatMap((row) => [...row.matchAll(/`([\w.]+)`/g)].map(([, name]) => name));
    expect(named.toSorted()).toEqual(eventKindSchema.options.toSorted());
  });

  it("shows a receiver that accepts only genuine requests", async () => {
    const directory = await mkdtemp(join(tmpdir(), "sandpiper-docs-"));
    try {
      const file = join(directory, "receiver.ts");
      await writeFile(file, /```ts\n(.*?)```/s.exec(document)?.[1] ?? "");
      const { isGenuine } = await import(pathToFileURL(file).href);
      const timestamp = Math.floor(Date.now() / 1000);
      const body = '{"id":1}';
      const signed = (at: number) => ({
        "sandpiper-timestamp": String(at),
        "sandpiper-signature": webhookSignature("secret", { timestamp: at, body }),
      });
      expect(isGenuine("secret", signed(timestamp), body)).toBe(true);
      expect(isGenuine("secret", signed(timestamp - 1000), body)).toBe(false);
      expect(isGenuine("secret", signed(timestamp), '{"id":2}')).toBe(false);
      expect(isGenuine("other", signed(timestamp), body)).toBe(false);
      expect(isGenuine("secret", {}, body)).toBe(false);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
