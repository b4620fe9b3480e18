import type { ObjectStore } from "@sandpiper/core";
import { FakeClock, MemoryStore, rejection } from "@sandpiper/core/testing";
import { createSecretBodySchema, updateSecretBodySchema } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { Keyring } from "../auth/keyring.ts";
import { rewriteData } from "../store/rewrite-data.ts";
import { SealedStates } from "../store/sealed-states.ts";
import { SecretService } from "./secret-service.ts";

const VALUE = "sk-real-0123456789";
const openai = { name: "openai", value: VALUE, hosts: ["api.openai.com"], env: "OPENAI_API_KEY" };

function world() {
  const clock = new FakeClock();
  const objects = new MemoryStore();
  const store: ObjectStore = new SealedStates(objects, new Keyring({ secrets: ["a".repeat(32)], salt: "test" }));
  const service = () => new SecretService({ store, isShared: true, clock });
  return { clock, objects, service };
}

it("returns no value from any call", async () => {
  const secrets = world().service();
  const answers = [
    await secrets.create("ours", openai),
    await secrets.update("ours", "openai", { value: `${VALUE}2` }),
    await secrets.list("ours"),
    await secrets.uses("ours", ["openai"]),
  ];
  expect(JSON.stringify(answers)).not.toContain(VALUE);
  expect(answers[2]).toMatchObject([{ name: "openai", hosts: ["api.openai.com"], inject: { replaceIn: ["header"] } }]);
});

it("stores values, names and hosts encrypted", async () => {
  const { objects, service } = world();
  await service().create("ours", openai);
  const stored = await Promise.all((await Array.fromAsync(objects.list(""))).map(({ key }) => objects.get(key)));
  expect(stored).toHaveLength(1);
  for (const text of [VALUE, "openai", "ours"]) {
    expect(stored.some((object) => Buffer.from(object?.bytes ?? []).includes(text))).toBe(false);
  }
});

it("keeps the secrets of tenants apart", async () => {
  const secrets = world().service();
  await secrets.create("ours", openai);
  expect(await secrets.list("theirs")).toEqual([]);
  await expect(secrets.uses("theirs", ["openai"])).rejects.toMatchObject({ reason: "no_such_secret" });
  await expect(secrets.remove("theirs", "openai")).rejects.toMatchObject({ reason: "no_such_secret" });
});

it("refuses a second secret of the same name", async () => {
  const secrets = world().service();
  await secrets.create("ours", openai);
  const refused = await rejection(secrets.create("ours", openai));
  expect(refused).toMatchObject({ reason: "secret_exists" });
  expect(JSON.stringify(refused)).not.toContain(VALUE);
});

it("uses a value that another node rotated after at most a second", async () => {
  const { clock, service } = world();
  const [one, two] = [service(), service()];
  await one.create("ours", openai);
  expect((await two.of("ours").read())[0]?.value).toBe(VALUE);
  await one.update("ours", "openai", { value: "sk-new-0123456789" });
  expect((await one.of("ours").read())[0]?.value).toBe("sk-new-0123456789");
  await clock.advance(1000);
  expect((await two.of("ours").read())[0]?.value).toBe("sk-new-0123456789");
});

it("ignores an older version that someone put back into the store, and changes nothing then", async () => {
  const { clock, objects, service } = world();
  const secrets = service();
  await secrets.create("ours", openai);
  const [{ key } = { key: "" }] = await Array.fromAsync(objects.list(""));
  const old = (await objects.get(key))?.bytes as Uint8Array;
  await secrets.update("ours", "openai", { value: "sk-new-0123456789" });
  await objects.put(key, old);
  await clock.advance(1000);
  expect((await secrets.of("ours").read())[0]?.value).toBe("sk-new-0123456789");
  await expect(secrets.remove("ours", "openai")).rejects.toMatchObject({ reason: "object_replayed" });
});

it("keeps the values that it knows while the store cannot be read", async () => {
  const { clock, objects, service } = world();
  const secrets = service();
  await secrets.create("ours", openai);
  objects.head = () => Promise.reject(new Error("unreachable"));
  await clock.advance(1000);
  expect((await secrets.of("ours").read())[0]?.value).toBe(VALUE);
  await expect(secrets.of("theirs").read()).rejects.toThrow("unreachable");
});

it("are encrypted with the new secret of a node or cluster when its data is rewritten", async () => {
  const objects = new MemoryStore();
  const clock = new FakeClock();
  const serviceWith = (...secrets: [string, ...string[]]) => {
    const keyring = new Keyring({ secrets, salt: "test" });
    return {
      keyring,
      service: new SecretService({ store: new SealedStates(objects, keyring), isShared: true, clock }),
    };
  };
  await serviceWith("a".repeat(32)).service.create("ours", openai);
  const { keyring } = serviceWith("b".repeat(32), "a".repeat(32));
  expect(await rewriteData({ store: objects, keyring, acceptUnprotected: false })).toBe(1);
  expect(await serviceWith("b".repeat(32)).service.of("ours").read()).toMatchObject([{ value: VALUE }]);
});

it("gives each sandbox a placeholder of its own, which an update keeps", async () => {
  const secrets = world().service();
  await secrets.create("ours", openai);
  await secrets.create("ours", { ...openai, name: "other", env: null });
  const [first] = await secrets.uses("ours", ["openai"]);
  const [second] = await secrets.uses("ours", [{ name: "openai", env: "KEY" }]);
  expect(first).toMatchObject({
    env: "OPENAI_API_KEY",
    placeholder: expect.stringMatching(/^sandpiper-secret-[0-9a-f]{24}$/),
  });
  expect(second?.env).toBe("KEY");
  expect(second?.placeholder).not.toBe(first?.placeholder);
  const updated = await secrets.uses("ours", ["other", "openai"], first && [first]);
  expect(updated[1]).toEqual(first);
});

it("accepts a change of hosts only together with the value", () => {
  expect(updateSecretBodySchema.safeParse({ hosts: ["evil.example.com"] }).success).toBe(false);
  expect(updateSecretBodySchema.safeParse({ env: "KEY" }).success).toBe(true);
  expect(updateSecretBodySchema.safeParse({ hosts: ["new.example.com"], value: VALUE }).success).toBe(true);
});

it.each([
  [{ hosts: ["*.com"] }],
  [{ hosts: ["10.0.0.1"] }],
  [{ hosts: ["https://api.openai.com"] }],
  [{ hosts: [] }],
  [{ value: "two\nlines" }],
  [{ inject: { header: "Host", format: "{}" } }],
  [{ inject: { header: "Transfer-Encoding", format: "{}" } }],
  [{ inject: { header: "X", format: "no place" } }],
])("refuses the secret with %j without repeating a value", (fields) => {
  const { success, error } = createSecretBodySchema.safeParse({ ...openai, ...fields });
  expect(success).toBe(false);
  expect(JSON.stringify(error)).not.toContain("lines");
});
