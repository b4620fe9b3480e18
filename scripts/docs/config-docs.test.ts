import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parseNodeConfig } from "../../packages/node/src/config/load-node-config.ts";
import { formatConfigDocs } from "./config-docs.ts";

const written = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");

it("docs/configuration.md matches the configuration schema", () => {
  expect(written, "docs/configuration.md is out of date: run `npm run docs`").toBe(formatConfigDocs());
});

it("the example in docs/configuration.md is a valid configuration", () => {
  const [, example = ""] = /```json\n(.*?)```/s.exec(written) ?? [];
  expect(parseNodeConfig(JSON.parse(example))).toMatchObject({ port: 4800, defaults: { memoryMib: 512 } });
});
