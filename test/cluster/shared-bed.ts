import { onTestFinished } from "vitest";
import { startGcsServer } from "../../packages/node/src/store/testing/gcs-server.ts";
import { startS3Server } from "../../packages/node/src/store/testing/s3-server.ts";
import { ClusterBed } from "./cluster-bed.ts";

/** Long enough for a busy machine, short enough to wait until it expires. */
const LEASE_MS = 3000;
/** All nodes of a bed share one machine's clock. */
const MAX_SKEW_MS = 200;

export interface SharedBedOptions {
  readonly store: "file" | "s3" | "gcs";
  /** Settings of every node, as its environment. */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** The nodes cannot reach each other. */
  readonly isIsolated?: boolean | undefined;
}

/** Three nodes of one cluster. */
export async function startSharedBed({ store, env = {}, isIsolated }: SharedBedOptions): Promise<ClusterBed> {
  const settings = { SANDPIPER_LEASE_MS: `${LEASE_MS}`, SANDPIPER_MAX_SKEW_MS: `${MAX_SKEW_MS}`, ...env };
  if (store === "file") return await ClusterBed.start({ store, env: settings, isIsolated });
  const server = await (store === "s3" ? startS3Server() : startGcsServer());
  onTestFinished(() => server[Symbol.asyncDispose]());
  await server.createBucket("cluster");
  const url = store === "s3" ? "s3://cluster/bed" : "gs://cluster/bed";
  return await ClusterBed.start({ store: { ...server, url }, env: settings, isIsolated });
}
