import { cacheListSchema } from "./cache.ts";
import { stopSandboxBodySchema } from "./container.ts";
import * as image from "./image.ts";
import { change, json, look, type Route, remove, SANDBOX } from "./route.ts";
import { sandboxResourceSchema } from "./sandbox.ts";
import { volumeListSchema } from "./volume.ts";

/** Operations of providers of containers; images and caches are those of the node that answers. */
export const containerRoutes = {
  rebuildSandbox: {
    ...change,
    path: `${SANDBOX}/rebuild`,
    summary: "Recreate a sandbox's container from the current image, keeping its volumes",
    access: "sandbox",
    answer: json(sandboxResourceSchema),
  },
  stopSandbox: {
    ...change,
    path: `${SANDBOX}/stop`,
    summary: "Stop a sandbox's container: its processes end, its files stay",
    access: "sandbox",
    body: json(stopSandboxBodySchema),
    answer: json(sandboxResourceSchema),
  },
  startSandbox: {
    ...change,
    path: `${SANDBOX}/start`,
    summary: "Start a stopped or paused sandbox",
    access: "sandbox",
    answer: json(sandboxResourceSchema),
  },
  pullImage: {
    ...change,
    path: "/v1/images/pull",
    summary: "Pull an image and stream the progress",
    access: "sandboxes",
    body: json(image.pullImageBodySchema),
    answer: { kind: "events", schema: image.pullProgressSchema },
  },
  listCaches: {
    ...look,
    path: "/v1/caches",
    summary: "List the caches of your projects on this node",
    access: "read",
    answer: json(cacheListSchema),
  },
  clearCache: {
    ...remove,
    path: "/v1/caches/{project}/{cache}",
    summary: "Delete a cache that no sandbox uses",
    access: "sandboxes",
  },
  listVolumes: {
    ...look,
    path: "/v1/volumes",
    summary: "List the volumes that your destroyed sandboxes left on this node",
    access: "read",
    answer: json(volumeListSchema),
  },
  removeVolume: {
    ...remove,
    path: "/v1/volumes/{volume}",
    summary: "Delete a kept volume that no sandbox uses",
    access: "sandboxes",
  },
} as const satisfies Record<string, Route>;
