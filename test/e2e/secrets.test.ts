import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { useNode } from "./node-process.ts";

const node = await useNode();
const VALUE = "sk-real-0123456789";

async function ok(argv: readonly string[], stdin = ""): Promise<string> {
  const { stdout, stderr, exitCode } = await node.run(argv, { stdin });
  expect([exitCode, stderr], argv.join(" ")).toEqual([0, ""]);
  return stdout;
}

it("secrets are created from standard input or a file, listed without values, rotated and deleted", async () => {
  const header = ["--header", "Authorization", "--format", "Bearer {}"];
  const create = ["secrets", "create", "openai", "--host", "api.openai.com", ...header, "--env", "OPENAI_API_KEY"];
  expect(await ok(create, `${VALUE}\n`)).toBe("openai\n");
  const file = join(node.home, "value");
  writeFileSync(file, VALUE);
  await ok(["secrets", "create", "maps", "--host", "*.example.com:8443", "--replace-in", "query", "--file", file]);
  const listed = await ok(["secrets", "ls", "--json"]);
  expect(JSON.parse(listed)).toMatchObject([
    { name: "openai", hosts: ["api.openai.com"], inject: { header: "Authorization", format: "Bearer {}" } },
    { name: "maps", hosts: ["*.example.com:8443"], inject: { replaceIn: ["query"] }, env: null },
  ]);
  expect(listed).not.toContain(VALUE);
  await ok(["secrets", "update", "openai"], "sk-next-0123456789");

  const id = (await ok(["create", "--secret", "openai", "--secret", "maps=MAPS_KEY"])).trim();
  const inside = await ok(["exec", id, "--", "sh", "-c", 'echo "$OPENAI_API_KEY $MAPS_KEY $SSL_CERT_FILE"']);
  expect(inside).toMatch(/^sandpiper-secret-\w+ sandpiper-secret-\w+ \/etc\/sandpiper\/ca-bundle.crt\n$/);
  await ok(["secrets", "rm", "openai", "maps"]);
  expect(JSON.parse(await ok(["secrets", "ls", "--json"]))).toEqual([]);
});

it.each([
  [["secrets", "create", "x"], "missing --host"],
  [["secrets", "create", "x", "--host", "a.example.com", "--format", "{}"], "--format needs --header"],
  [["secrets", "create", "x", "--host", "*.com"], "hosts"],
])("%j is refused without the value in the error", async (argv, message) => {
  const { stderr, exitCode } = await node.run(argv, { stdin: VALUE });
  expect(exitCode).not.toBe(0);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain(VALUE);
});
