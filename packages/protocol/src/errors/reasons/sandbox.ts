import type { ErrorReasonEntry } from "../error-reason.ts";

export const sandboxReasons = {
  chroot_mismatch: {
    code: "invalid_argument",
    meaning: "The config asks for a chroot other than the directory in which the provider keeps its instances.",
    hint: "leave chroot out, or give the provider this directory",
    details: { chroot: "string", providerChroot: "string?" },
  },
  cleanup_failed: {
    code: "internal",
    meaning: "Instances could not be removed.",
    hint: "remove them by their ids, or reconcile with orphans: destroy",
    details: { ids: "string[]?" },
  },
  destroy_all: {
    code: "canceled",
    meaning: "The sandbox was not created because the manager is destroying all sandboxes.",
    hint: "create the sandbox again after destroyAll() has returned",
  },
  idempotency_key_reused: {
    code: "conflict",
    meaning: "The idempotency key was used before, with another request.",
    hint: "use a new key for each request, and the same key only to repeat a request unchanged",
  },
  illegal_transition: {
    code: "failed_precondition",
    meaning: "A sandbox cannot change from its state to the requested one.",
    hint: "wait for another state, or create a new sandbox",
    details: { from: "string", to: "string", allowed: "string[]" },
  },
  instance_crashed: {
    code: "unavailable",
    meaning: "The instance of the sandbox ended unexpectedly.",
    hint: "create a new sandbox",
  },
  invalid_state: {
    code: "failed_precondition",
    meaning: "The operation needs the sandbox in another state.",
    hint: "read the state of the sandbox, and its failure if it has one",
    details: { expected: "string", actual: "string" },
  },
  invalid_target: {
    code: "invalid_argument",
    meaning: "The target of a warm pool is not a whole number, at least 0.",
    hint: "give a whole number, 0 for none",
    details: { target: "number" },
  },
  manager_closed: {
    code: "failed_precondition",
    meaning: "The manager has been closed and creates no sandboxes.",
    hint: "create a new SandboxManager",
  },
  no_such_sandbox: {
    code: "not_found",
    meaning: "No sandbox with this id exists, or the credential may not see it.",
    hint: "list the sandboxes to see their ids",
    details: { id: "string?" },
  },
  not_found_yet: {
    code: "unavailable",
    meaning: "The provider has not reported the instance of the sandbox yet.",
    hint: "retry shortly; the node's log shows whether the provider answers",
    details: { id: "string", state: "string" },
  },
  not_ready: {
    code: "failed_precondition",
    meaning: "The operation needs a running sandbox.",
    hint: "wait until its state is ready, or resume it",
    details: { id: "string?", state: "string?" },
  },
  out_of_memory: {
    code: "resource_exhausted",
    meaning: "The sandbox exceeded its memory limit, or had no memory left for a process.",
    hint: "create the sandbox with a larger memoryMib",
  },
  pool_closed: {
    code: "failed_precondition",
    meaning: "The warm pool has been closed and starts no instances.",
    hint: "the node is stopping; retry when it runs again",
  },
  pool_lowered: {
    code: "canceled",
    meaning: "The pool ended the start of an instance that it no longer needs.",
  },
  provider_lacks_capability: {
    code: "unimplemented",
    meaning: "The provider of the sandbox cannot do this.",
    hint: "use another provider; docs/providers.md compares them",
    details: { provider: "string?", capability: "string?", id: "string?" },
  },
  quota_exceeded: {
    code: "resource_exhausted",
    meaning: "The key's quota does not allow another sandbox, or one of this size.",
    hint: "destroy a sandbox of this key, ask for less, or use a key with a larger quota",
    details: { quota: "string", used: "number", wanted: "number", limit: "number" },
  },
  sandbox_destroyed: {
    code: "gone",
    meaning: "The sandbox has been destroyed.",
    hint: "create a new sandbox",
    details: { id: "string?", state: "string?" },
  },
  sandbox_exists: {
    code: "already_exists",
    meaning: "A sandbox with this id already exists.",
    hint: "use another id",
    details: { id: "string?" },
  },
  sandbox_in_use: {
    code: "failed_precondition",
    meaning: "Another client is attached to the sandbox.",
    hint: "take the sandbox over, or retry when that client has left",
  },
  sandbox_limit: {
    code: "resource_exhausted",
    meaning: "As many sandboxes exist as maxSandboxes allows.",
    hint: "destroy a sandbox, or raise maxSandboxes",
    details: { maxSandboxes: "number" },
  },
  sandbox_paused: {
    code: "failed_precondition",
    meaning: "The sandbox is paused.",
    hint: "resume it",
    details: { id: "string", state: "string" },
  },
  sandbox_stopped: {
    code: "unavailable",
    meaning: "The sandbox is being saved, or was saved and stopped.",
    hint: "resume it, or retry: it may be running elsewhere by now",
    details: { expected: "string?", actual: "string?" },
  },
  unknown_provider: {
    code: "invalid_argument",
    meaning: "The node has no provider of this name.",
    hint: "name a provider of this node",
    details: { provider: "string", known: "string[]" },
  },
  provider_not_configured: {
    code: "failed_precondition",
    meaning: "The node was started without the provider of this sandbox.",
    hint: "start the node with the provider that created this sandbox",
  },
} as const satisfies Record<string, ErrorReasonEntry>;
