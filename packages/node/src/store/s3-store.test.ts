import { describeStore } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { S3Store } from "./s3-store.ts";
import { type S3Server, startS3Server } from "./testing/s3-server.ts";

/** The server is built when it is not there yet. */
const BUILD_TIMEOUT_MS = 600_000;

let server: S3Server | undefined;
beforeAll(async () => {
  server = await startS3Server();
  for (const [name, value] of Object.entries(server.env)) vi.stubEnv(name, value);
  await server.createBucket("sandpiper-tests");
}, BUILD_TIMEOUT_MS);
afterAll(async () => {
  vi.unstubAllEnvs();
  await server?.[Symbol.asyncDispose]();
});

describeStore("s3", () => new S3Store({ bucket: "sandpiper-tests", prefix: "some/where" }), {
  framework: { describe, it, beforeAll, afterAll, expect },
});
