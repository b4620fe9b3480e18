// biome-ignore-all format: one row per line makes it a table
import type { ErrorReasonEntry } from "../error-reason.ts";

export const storeReasons = {
  bad_store_key: { code: "invalid_argument", meaning: "The key or prefix is not allowed in a store.", hint: "use letters, digits and . _ = + : , @ - in segments between slashes; no segment is empty, `.` or `..`" },
  bad_store_url: { code: "invalid_argument", meaning: "The URL does not name a store.", hint: "use file:///absolute/directory, s3://bucket/prefix or gs://bucket/prefix" },
  bucket_missing: { code: "failed_precondition", meaning: "The bucket of the store does not exist.", hint: "create the bucket, or correct SANDPIPER_STORE" },
  object_damaged: { code: "data_loss", meaning: "An object in the store is damaged or missing; it was left unchanged.", hint: "restore it from a backup of the store, and check which other programs write to the store", details: { key: "string?", store: "string?", tag: "string?" } },
  object_forged: { code: "data_loss", meaning: "No node of the cluster wrote this version of an object in the store; the node ignores it.", hint: "find out who else can write to the store. Nodes replace forged keys, their own entries and the locks of their sandboxes; `sandpiper store repair` replaces the lock of a sandbox at rest; restore other objects from a backup of the store", details: { key: "string", store: "string", tag: "string" } },
  object_replayed: { code: "data_loss", meaning: "An object in the store is older than a version that the node has seen; the node ignores it.", hint: "find out who else can write to the store; then restore the newest version from a backup. A node that restarts accepts the older version of a lock or quota; `sandpiper store repair --accept-older-state` accepts an older state", details: { key: "string", store: "string", tag: "string?" } },
  outcome_unknown: { code: "unavailable", meaning: "The node does not know whether the store wrote an object.", hint: "read the object again before you rely on it" },
  store_contended: { code: "unavailable", meaning: "Other nodes changed the object first, each time.", hint: "retry", details: { store: "string", key: "string" } },
  store_full: { code: "resource_exhausted", meaning: "The store is full.", hint: "free space in the store, or destroy sandboxes and delete checkpoints" },
  store_inconsistent: { code: "unavailable", meaning: "The store does not return what was just written.", hint: "use a consistent store: mount a network file system with actimeo=0" },
  store_lacks_conditions: { code: "failed_precondition", meaning: "The server of the store ignores the conditions of writes.", hint: "use a server with conditional writes; docs/store.md names some" },
  store_misplaced: { code: "failed_precondition", meaning: "The store's path is not a usable directory.", hint: "name a directory that exists or can be created" },
  store_not_configured: { code: "failed_precondition", meaning: "The store's credentials or region are not configured.", hint: "s3://: set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or another source that the AWS SDK reads; gs://: set up Application Default Credentials" },
  store_not_migrated: { code: "failed_precondition", meaning: "An earlier version of Sandpiper wrote the store, without signatures.", hint: "stop all nodes, make sure that only they can write to the store, and run `sandpiper store migrate` with the cluster's secret", details: { store: "string" } },
  store_refused: { code: "permission_denied", meaning: "The store refuses access.", hint: "check the credentials: the node must list, read, write and delete under the prefix" },
  store_timeout: { code: "unavailable", meaning: "The store took too long.", hint: "check the network and the load of the store; the node retries" },
  store_too_new: { code: "failed_precondition", meaning: "A newer version of Sandpiper wrote the store; nothing was changed in it.", hint: "start the newer version of Sandpiper; docs/operations.md describes how to go back to an earlier one", details: { store: "string", found: "number", known: "number" } },
  store_unreachable: { code: "unavailable", meaning: "The store does not answer.", hint: "check the network, the mount, and AWS_ENDPOINT_URL or STORAGE_EMULATOR_HOST if one is set" },
} as const satisfies Record<string, ErrorReasonEntry>;
