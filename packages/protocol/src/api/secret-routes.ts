import { change, json, look, make, type Route, remove } from "./route.ts";
import { createSecretBodySchema, secretListSchema, secretResourceSchema, updateSecretBodySchema } from "./secret.ts";

const SECRET = "/v1/secrets/{secret}";

/** Secrets of the key's tenant. No answer contains a value. */
export const secretRoutes = {
  createSecret: {
    ...make,
    path: "/v1/secrets",
    summary: "Create a secret that the node injects into requests to its hosts",
    access: "sandboxes",
    body: json(createSecretBodySchema),
    answer: json(secretResourceSchema),
  },
  listSecrets: {
    ...look,
    path: "/v1/secrets",
    summary: "List secrets, without their values",
    access: "read",
    answer: json(secretListSchema),
  },
  updateSecret: {
    ...change,
    method: "PATCH",
    path: SECRET,
    summary: "Rotate a secret, or change its hosts, injection or variable",
    access: "sandboxes",
    body: json(updateSecretBodySchema),
    answer: json(secretResourceSchema),
  },
  deleteSecret: { ...remove, path: SECRET, summary: "Delete a secret", access: "sandboxes" },
} as const satisfies Record<string, Route>;
