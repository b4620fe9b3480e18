import * as preview from "./preview.ts";
import { change, json, look, make, type Route, remove, SANDBOX } from "./route.ts";

const PORT = `${SANDBOX}/ports/{port}`;
const LINKS = `${SANDBOX}/links`;

/** Operations on previews. A path below a port is the preview itself. */
export const previewRoutes = {
  listPorts: {
    ...look,
    path: `${SANDBOX}/ports`,
    summary: "List the ports on which programs in a sandbox listen",
    access: "sandbox",
    answer: json(preview.portListSchema),
  },
  getPreview: {
    ...look,
    path: PORT,
    summary: "Get the URL of a port's preview, and who may use it",
    access: "sandbox",
    answer: json(preview.previewResourceSchema),
  },
  setPreview: {
    ...change,
    method: "PUT",
    path: PORT,
    summary: "Make a port's preview public or private",
    access: "sandbox",
    body: json(preview.setPreviewBodySchema),
    answer: json(preview.previewResourceSchema),
  },
  createLink: {
    ...make,
    path: LINKS,
    summary: "Create a link that opens a private preview until it expires",
    access: "sandbox",
    body: json(preview.createLinkBodySchema),
    answer: json(preview.linkResourceSchema),
  },
  revokeLinks: {
    ...remove,
    path: LINKS,
    summary: "Revoke all links and the traffic token of a sandbox",
    access: "sandbox",
  },
} as const satisfies Record<string, Route>;
