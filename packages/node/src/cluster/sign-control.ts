import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { type ObjectStore, SandboxError } from "@sandpiper/core";
import { z } from "zod";
import { Keyring } from "../auth/keyring.ts";
import { contentOf, signObject, verifyObject } from "../store/signed-object.ts";
import { isControlObject } from "../store/signed-store.ts";
import type { ClusterSecrets } from "./cluster-secret.ts";
import { CLUSTER_OBJECT } from "./join-cluster.ts";

const PREFIXES = ["keys.json", "locks/", "quotas/", "names/", "nodes/", CLUSTER_OBJECT];
const KEY_BYTES = 32;
const identitySchema = z.object({ id: z.uuid(), check: z.string().optional() });

export interface SignControlOptions {
  readonly store: ObjectStore;
  /** The first one signs. */
  readonly secrets: ClusterSecrets;
  /** Signs objects without a signature, which an earlier version wrote. Only an operator can know that no other program wrote them. */
  readonly acceptsUnsigned: boolean;
  /** Called before any object is signed, so that an interrupted migration is repeated as a whole. */
  readonly prepare?: ((keyring: Keyring) => Promise<void>) | undefined;
}

export interface SignedControl {
  readonly keyring: Keyring;
  readonly signed: number;
}

/**
 * Signs all objects that control a cluster with its current secret: to migrate a store, or before a replaced secret is dropped. Nodes
 * may run meanwhile if the objects are signed already. Throws at the first object that no node wrote. `cluster.json` is last, so
 * that an interrupted migration can be repeated.
 */
export async function signControl(options: SignControlOptions): Promise<SignedControl> {
  const { store, secrets, acceptsUnsigned, prepare } = options;
  const keyring = new Keyring({ secrets, salt: await clusterId(store, secrets) });
  await prepare?.(keyring);
  let signed = 0;
  for (const prefix of PREFIXES) {
    for await (const { key } of store.list(prefix)) {
      if (isControlObject(key) && (await signOne(store, { key, keyring, acceptsUnsigned }))) signed++;
    }
  }
  return { keyring, signed };
}

async function signOne(
  store: ObjectStore,
  { key, keyring, acceptsUnsigned }: { key: string; keyring: Keyring; acceptsUnsigned: boolean },
): Promise<boolean> {
  for (;;) {
    const stored = await store.get(key);
    if (stored === undefined) return false;
    const verified = verifyObject(keyring, key, stored.bytes);
    const isMissing = "fault" in verified && verified.fault === "unsigned" && acceptsUnsigned;
    if ("fault" in verified && !isMissing) throw notSigned(store, key, stored.tag);
    const { content, sequence, secretId } =
      "fault" in verified ? { content: stored.bytes, sequence: 0, secretId: undefined } : verified;
    if (secretId === keyring.currentId) return false;
    const bytes = signObject(keyring, { key, sequence: sequence + 1 }, content);
    // A node that wrote the object meanwhile may have signed it with either secret.
    if ((await store.put(key, bytes, { ifMatch: stored.tag })) !== undefined) return true;
  }
}

async function clusterId(store: ObjectStore, secrets: ClusterSecrets): Promise<string> {
  const stored = await store.get(CLUSTER_OBJECT);
  const content = stored && (contentOf(stored.bytes) ?? stored.bytes);
  const { id, check } = parseIdentity(store, content);
  if (check !== undefined && !secrets.some((secret) => isUnsignedCheck(secret, id, check))) {
    throw new SandboxError("wrong_cluster_secret", {
      message: `the secret does not match the cluster in ${store.label}; nothing was changed there`,
      details: { store: store.label },
    });
  }
  return id;
}

function parseIdentity({ label }: ObjectStore, content: Uint8Array | undefined): z.infer<typeof identitySchema> {
  try {
    return identitySchema.parse(JSON.parse(Buffer.from(content ?? []).toString()));
  } catch (cause) {
    throw new SandboxError("object_damaged", {
      message: `${CLUSTER_OBJECT} in ${label}, which identifies the cluster, is missing or damaged; nothing was changed there`,
      details: { key: CLUSTER_OBJECT, store: label },
      cause,
    });
  }
}

/** The proof of the secret in a `cluster.json` without a signature. */
function isUnsignedCheck(secret: string, id: string, check: string): boolean {
  const key = new Uint8Array(hkdfSync("sha256", secret, id, "sandpiper check", KEY_BYTES));
  const [ours, theirs] = [createHmac("sha256", key).update(id).digest("base64url"), check].map((text) =>
    Buffer.from(text),
  ) as [Buffer, Buffer];
  return ours.length === theirs.length && timingSafeEqual(ours, theirs);
}

function notSigned({ label }: ObjectStore, key: string, tag: string): SandboxError {
  return new SandboxError("object_forged", {
    message: `${key} in ${label} has no valid signature; it was not changed`,
    details: { key, store: label, tag },
  });
}
