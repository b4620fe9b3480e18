import { describeStore, rejection } from "@sandpiper/core/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { S3Store } from "./s3-store.ts";
import { startAnswerCutter } from "./testing/answer-cutter.ts";
import { type S3Server, startS3Server } from "./testing/s3-server.ts";

/** The first run builds the server. */
const BUILD_TIMEOUT_MS = 600_000;
const BUCKET = "sandpiper-tests";

let server: S3Server | undefined;
const useServer = () => {
  for (const [name, value] of Object.entries(server?.env ?? {})) vi.stubEnv(name, value);
};
beforeAll(async () => {
  server = await startS3Server();
  await server.createBucket(BUCKET);
  useServer();
}, BUILD_TIMEOUT_MS);
afterEach(useServer);
afterAll(async () => {
  vi.unstubAllEnvs();
  await server?.[Symbol.asyncDispose]();
});

const text = (content: string) => Buffer.from(content);
const openAt = async (endpoint: string) => {
  vi.stubEnv("AWS_ENDPOINT_URL", endpoint);
  const store = new S3Store({ bucket: BUCKET, prefix: "lost" });
  // Connects and checks for conditional writes.
  await store.put("ready", text("x"), { ifAbsent: true });
  return store;
};

describeStore("s3", () => new S3Store({ bucket: BUCKET, prefix: "some/where" }), {
  framework: { describe, it, beforeAll, afterAll, expect },
});

it("an object of another program in the bucket is named as such, with a tag to replace it by", async () => {
  const { S3Client, PutObjectCommand } = await import("@aws-sdk/client-s3");
  const store = new S3Store({ bucket: BUCKET, prefix: "foreign" });
  const client = new S3Client({ forcePathStyle: true });
  const Key = "foreign/locks/foreign.lock";
  await client.send(new PutObjectCommand({ Bucket: BUCKET, Key, Body: "hello" }));
  client.destroy();
  const error = await rejection(store.get("locks/foreign.lock"));
  expect(error).toMatchObject({
    reason: "object_damaged",
    details: { key: "locks/foreign.lock", tag: expect.any(String) },
  });
  expect(error.message).toContain("was not written by Sandpiper");
  expect((await store.head("locks/foreign.lock"))?.size).toBe(0);
});

describe("a conditional write whose response is lost", () => {
  it("succeeds if the client repeats it and the server refuses the repetition", async () => {
    await using cutter = await startAnswerCutter(server?.endpoint ?? "");
    const store = await openAt(cutter.endpoint);
    let cuts = 0;
    cutter.cut = ({ method }) => method === "PUT" && ++cuts === 1;
    const tag = await store.put("again", text("mine"), { ifAbsent: true });
    expect(cuts).toBe(2);
    expect(tag).toBe((await store.head("again"))?.tag);
    cuts = 0;
    const next = await store.put("again", text("mine too"), { ifMatch: tag ?? "" });
    expect(cuts).toBe(2);
    expect(next).toBe((await store.head("again"))?.tag);
  });

  it("succeeds if no response ever arrives but the object has its mark", async () => {
    await using cutter = await startAnswerCutter(server?.endpoint ?? "");
    const store = await openAt(cutter.endpoint);
    cutter.cut = ({ method }) => method === "PUT";
    const tag = await store.put("never", text("mine"), { ifAbsent: true });
    expect(tag).toBe((await store.head("never"))?.tag);
  });

  it("is reported as unknown, not as refused, if another writer has replaced the object", async () => {
    const other = new S3Store({ bucket: BUCKET, prefix: "lost" });
    await other.put("ready", text("x"));
    await using cutter = await startAnswerCutter(server?.endpoint ?? "");
    const store = await openAt(cutter.endpoint);
    let cuts = 0;
    cutter.cut = async ({ method }) => {
      if (method !== "PUT" || ++cuts > 1) return false;
      await other.put("replaced", text("theirs"), { ifMatch: (await other.head("replaced"))?.tag ?? "" });
      return true;
    };
    expect(await rejection(store.put("replaced", text("mine"), { ifAbsent: true }))).toMatchObject({
      code: "unavailable",
      reason: "outcome_unknown",
    });
    expect(Buffer.from((await other.get("replaced"))?.bytes ?? []).toString()).toBe("theirs");
  });
});

describe("an S3 store", () => {
  it("reports bucket_missing if its bucket does not exist", async () => {
    const store = new S3Store({ bucket: "no-such-bucket", prefix: "" });
    for (const attempt of [() => store.put("a", text("x")), () => store.get("a"), () => first(store.list(""))]) {
      expect(await rejection(attempt())).toMatchObject({
        code: "failed_precondition",
        reason: "bucket_missing",
        hint: expect.stringContaining("create the bucket"),
      });
    }
  });

  it("reports store_refused for wrong credentials, without showing them", async () => {
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "not-the-secret");
    const error = await rejection(new S3Store({ bucket: BUCKET, prefix: "" }).put("a", text("x")));
    expect(error).toMatchObject({ code: "permission_denied", reason: "store_refused" });
    expect(`${error.message}${error.hint}`).not.toContain("not-the-secret");
  });

  it("reports unavailable if no server listens at its endpoint", async () => {
    vi.stubEnv("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    expect(await rejection(new S3Store({ bucket: BUCKET, prefix: "" }).put("a", text("x")))).toMatchObject({
      code: "unavailable",
      hint: expect.stringContaining("AWS_ENDPOINT_URL"),
    });
  });
});

describe("an object that Sandpiper did not write", () => {
  it("is reported as object_damaged", async () => {
    const outer = new S3Store({ bucket: BUCKET, prefix: "" });
    const inner = new S3Store({ bucket: BUCKET, prefix: "foreign" });
    await outer.put("foreign/fine", text("x"));
    expect((await inner.get("fine"))?.size).toBe(1);
    await server?.putRaw(BUCKET, "foreign/short", text("x"));
    expect(await rejection(inner.get("short"))).toMatchObject({ code: "data_loss", reason: "object_damaged" });
  });
});

async function first(items: AsyncIterable<unknown>): Promise<unknown> {
  for await (const item of items) return item;
  return undefined;
}
