import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CreateBucketCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { provideS3Server } from "../../../../../scripts/setup/servers.mjs";
import { freePort } from "./free-port.ts";

const REGION = "us-east-1";
const ATTEMPTS = 200;
const PAUSE_MS = 50;

export interface S3Server extends AsyncDisposable {
  readonly endpoint: string;
  /** The AWS SDK's variables that a process needs to reach the server. */
  readonly env: Readonly<Record<string, string>>;
  createBucket(name: string): Promise<void>;
  /** Writes an object as another program would, without Sandpiper's mark. */
  putRaw(bucket: string, key: string, bytes: Uint8Array): Promise<void>;
}

/** Starts a real S3 server on a loopback port with its objects in a temporary directory. The first call on a machine builds it. */
export async function startS3Server(): Promise<S3Server> {
  const program = await provideS3Server();
  const directory = await mkdtemp(join(tmpdir(), "sandpiper-s3-"));
  const address = `127.0.0.1:${await freePort()}`;
  const credentials = { accessKeyId: "test-key", secretAccessKey: "test-secret" };
  // Without --sidecar, which lost updates, most likely because it stores an object's tag apart from its content.
  const child = spawn(program, ["--port", address, "--region", REGION, "--keep-alive", "--quiet", "posix", directory], {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      ...process.env,
      ROOT_ACCESS_KEY_ID: credentials.accessKeyId,
      ROOT_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    },
  });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const endpoint = `http://${address}`;
  const client = new S3Client({ endpoint, region: REGION, credentials, forcePathStyle: true });
  const server: S3Server = {
    endpoint,
    env: {
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: REGION,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    },
    async createBucket(name) {
      await client.send(new CreateBucketCommand({ Bucket: name }));
    },
    async putRaw(bucket, key, bytes) {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: bytes }));
    },
    async [Symbol.asyncDispose]() {
      client.destroy();
      if (child.exitCode === null && child.signalCode === null) {
        kill();
        await once(child, "exit");
      }
      process.off("exit", kill);
      await rm(directory, { recursive: true, force: true });
    },
  };
  try {
    await untilAnswering(endpoint, () => child.exitCode);
  } catch (thrown) {
    await server[Symbol.asyncDispose]();
    throw thrown;
  }
  return server;
}

async function untilAnswering(endpoint: string, exitCode: () => number | null): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (exitCode() !== null) throw new Error(`the S3 server exited with ${exitCode()}`);
    const response = await fetch(endpoint).catch(() => undefined);
    await response?.body?.cancel();
    if (response !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  throw new Error(`the S3 server at ${endpoint} does not answer`);
}
