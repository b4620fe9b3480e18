import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeStore, rejection } from "@sandpiper/core/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { GcsStore } from "./gcs-store.ts";
import { startAnswerCutter } from "./testing/answer-cutter.ts";
import { type GcsServer, startGcsServer } from "./testing/gcs-server.ts";

/** The first run builds the server. */
const BUILD_TIMEOUT_MS = 600_000;
const BUCKET = "sandpiper-tests";

let server: GcsServer | undefined;
const useServer = () => {
  vi.unstubAllEnvs();
  for (const [name, value] of Object.entries(server?.env ?? {})) vi.stubEnv(name, value);
};
beforeAll(async () => {
  server = await startGcsServer();
  await server.createBucket(BUCKET);
  useServer();
}, BUILD_TIMEOUT_MS);
afterEach(useServer);
afterAll(async () => {
  vi.unstubAllEnvs();
  await server?.[Symbol.asyncDispose]();
});

const text = (content: string) => Buffer.from(content);
const isUpload = ({ method }: { readonly method?: string | undefined }) => method === "POST";
const openAt = async (endpoint: string) => {
  vi.stubEnv("STORAGE_EMULATOR_HOST", endpoint);
  const store = new GcsStore({ bucket: BUCKET, prefix: "lost" });
  // Connects and checks for conditional writes.
  await store.put("ready", text("x"), { ifAbsent: true });
  return store;
};

describeStore("gcs", () => new GcsStore({ bucket: BUCKET, prefix: "some/where" }), {
  framework: { describe, it, beforeAll, afterAll, expect },
});

describe("concurrent conditional writes to Google Cloud Storage", () => {
  const rivals = Array.from({ length: 30 }, () => new GcsStore({ bucket: BUCKET, prefix: "race" }));
  const winnersOf = (outcomes: readonly unknown[]) =>
    outcomes.filter((outcome) => outcome !== undefined && outcome !== false);

  it("let one of 30 create an object, one swap it, and one delete it, in every round", async () => {
    for (let round = 0; round < 5; round += 1) {
      const key = `round-${round}`;
      const created = winnersOf(
        await Promise.all(rivals.map((rival) => rival.put(key, text("a"), { ifAbsent: true }))),
      );
      expect(created).toHaveLength(1);
      const [ifMatch] = created as [string];
      const swapped = winnersOf(await Promise.all(rivals.map((rival) => rival.put(key, text("b"), { ifMatch }))));
      expect(swapped).toHaveLength(1);
      const [next] = swapped as [string];
      const deleted = await Promise.all(rivals.map((rival) => rival.delete(key, { ifMatch: next })));
      expect(winnersOf(deleted)).toHaveLength(1);
    }
  });
});

describe("a conditional write to Google Cloud Storage whose response is lost", () => {
  it("succeeds if the repetition is refused but the object has its mark", async () => {
    await using cutter = await startAnswerCutter(server?.endpoint ?? "");
    const store = await openAt(cutter.endpoint);
    let uploads = 0;
    cutter.cut = (request) => isUpload(request) && ++uploads === 1;
    const tag = await store.put("again", text("mine"), { ifAbsent: true });
    expect(uploads).toBe(2);
    expect(tag).toBe((await store.head("again"))?.tag);
    uploads = 0;
    const next = await store.put("again", text("mine too"), { ifMatch: tag ?? "" });
    expect(uploads).toBe(2);
    expect(next).toBe((await store.head("again"))?.tag);
  });

  it("succeeds if no response ever arrives but the object has its mark", async () => {
    await using cutter = await startAnswerCutter(server?.endpoint ?? "");
    const store = await openAt(cutter.endpoint);
    cutter.cut = isUpload;
    const tag = await store.put("never", text("mine"), { ifAbsent: true });
    expect(tag).toBe((await store.head("never"))?.tag);
  });

  it("is reported as unknown, not as refused, if another writer has replaced the object", async () => {
    const other = new GcsStore({ bucket: BUCKET, prefix: "lost" });
    await other.put("ready", text("x"));
    await using cutter = await startAnswerCutter(server?.endpoint ?? "");
    const store = await openAt(cutter.endpoint);
    let uploads = 0;
    cutter.cut = async (request) => {
      if (!isUpload(request) || ++uploads > 1) return false;
      await other.put("replaced", text("theirs"), { ifMatch: (await other.head("replaced"))?.tag ?? "" });
      return true;
    };
    expect(await rejection(store.put("replaced", text("mine"), { ifAbsent: true }))).toMatchObject({
      code: "unavailable",
      reason: "outcome_unknown",
    });
    expect(Buffer.from((await other.get("replaced"))?.bytes ?? []).toString()).toBe("theirs");
  });

  it("is reported as unknown if it was a deletion that the repetition no longer finds", async () => {
    await using cutter = await startAnswerCutter(server?.endpoint ?? "");
    const store = await openAt(cutter.endpoint);
    const ifMatch = (await store.put("deleted", text("x"))) ?? "";
    let deletions = 0;
    cutter.cut = ({ method }) => method === "DELETE" && ++deletions === 1;
    expect(await rejection(store.delete("deleted", { ifMatch }))).toMatchObject({ reason: "outcome_unknown" });
    expect(deletions).toBe(2);
  });
});

describe("a Google Cloud Storage store", () => {
  it("repeats a write that the server rejects because there were too many to this object", async () => {
    await using cutter = await startAnswerCutter(server?.endpoint ?? "");
    const store = await openAt(cutter.endpoint);
    let uploads = 0;
    cutter.refuse = (request) => (isUpload(request) && ++uploads <= 4 ? 429 : undefined);
    const tag = await store.put("busy", text("mine"), { ifAbsent: true });
    expect(uploads).toBe(5);
    expect(tag).toBe((await store.head("busy"))?.tag);
    expect(await store.put("busy", text("again"), { ifAbsent: true })).toBe(undefined);
  });

  it("reports bucket_missing if its bucket does not exist", async () => {
    const store = new GcsStore({ bucket: "no-such-bucket", prefix: "" });
    for (const attempt of [() => store.put("a", text("x")), () => store.get("a"), () => first(store.list(""))]) {
      expect(await rejection(attempt())).toMatchObject({
        code: "failed_precondition",
        reason: "bucket_missing",
        hint: expect.stringContaining("create the bucket"),
      });
    }
  });

  it("refuses a server that ignores the conditions of deletions", async () => {
    vi.stubEnv("STORAGE_EMULATOR_HOST", server?.rawEndpoint);
    const store = new GcsStore({ bucket: BUCKET, prefix: "lax" });
    expect(await rejection(store.put("a", text("x"), { ifAbsent: true }))).toMatchObject({
      code: "failed_precondition",
      reason: "store_lacks_conditions",
    });
  });

  it("reports unavailable if no server listens at its endpoint", async () => {
    vi.stubEnv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9");
    expect(await rejection(new GcsStore({ bucket: BUCKET, prefix: "" }).put("a", text("x")))).toMatchObject({
      code: "unavailable",
      reason: "store_unreachable",
      hint: expect.stringContaining("STORAGE_EMULATOR_HOST"),
    });
  });

  it("reports store_refused if the server refuses its credentials", async () => {
    await using cutter = await startAnswerCutter(server?.endpoint ?? "");
    cutter.refuse = () => 403;
    vi.stubEnv("STORAGE_EMULATOR_HOST", cutter.endpoint);
    expect(await rejection(new GcsStore({ bucket: BUCKET, prefix: "" }).put("a", text("x")))).toMatchObject({
      code: "permission_denied",
      reason: "store_refused",
      hint: expect.stringContaining("Storage Object User"),
    });
  });

  it("reports store_not_configured without Application Default Credentials", async () => {
    const home = mkdtempSync(join(tmpdir(), "sandpiper-gcs-"));
    vi.stubEnv("STORAGE_EMULATOR_HOST", undefined);
    vi.stubEnv("HOME", home);
    vi.stubEnv("CLOUDSDK_CONFIG", home);
    vi.stubEnv("METADATA_SERVER_DETECTION", "none");
    const broken = join(home, "key.json");
    writeFileSync(broken, "{}");
    try {
      for (const credentials of [undefined, join(home, "absent.json"), broken]) {
        vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", credentials);
        expect(await rejection(new GcsStore({ bucket: BUCKET, prefix: "" }).get("a"))).toMatchObject({
          code: "failed_precondition",
          reason: "store_not_configured",
          hint: expect.stringContaining("GOOGLE_APPLICATION_CREDENTIALS"),
        });
      }
    } finally {
      rmSync(home, { recursive: true });
    }
  });
});

async function first(items: AsyncIterable<unknown>): Promise<unknown> {
  for await (const item of items) return item;
  return undefined;
}
