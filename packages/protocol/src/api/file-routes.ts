import * as file from "./file.ts";
import { bytes, change, empty, json, look, type Route, remove, SANDBOX } from "./route.ts";

const FILES = `${SANDBOX}/files`;

/** The files of a sandbox. */
export const fileRoutes = {
  readFile: {
    ...look,
    path: FILES,
    summary: "Read a file or a range of it",
    access: "sandbox",
    query: file.readFileQuerySchema,
    answer: bytes,
  },
  writeFile: {
    ...change,
    method: "PUT",
    path: FILES,
    summary: "Write a file",
    access: "sandbox",
    query: file.writeFileQuerySchema,
    body: bytes,
    answer: json(file.writeResultSchema),
  },
  removeFile: {
    ...remove,
    path: FILES,
    summary: "Delete a file or directory",
    access: "sandbox",
    query: file.removeFileQuerySchema,
  },
  statFile: {
    ...look,
    path: `${FILES}/stat`,
    summary: "Get a file's metadata",
    access: "sandbox",
    query: file.statFileQuerySchema,
    answer: json(file.fileEntrySchema),
  },
  listFiles: {
    ...look,
    path: `${FILES}/list`,
    summary: "List a directory",
    access: "sandbox",
    query: file.listFilesQuerySchema,
    answer: json(file.fileListSchema),
  },
  makeDirectory: {
    ...change,
    path: `${FILES}/mkdir`,
    summary: "Create a directory",
    access: "sandbox",
    body: json(file.makeDirectoryBodySchema),
    answer: json(file.makeDirectoryResultSchema),
  },
  moveFile: {
    ...empty,
    path: `${FILES}/move`,
    summary: "Move or rename a file or directory",
    access: "sandbox",
    body: json(file.moveFileBodySchema),
  },
  changeMode: {
    ...empty,
    path: `${FILES}/chmod`,
    summary: "Change the permissions of a file or directory",
    access: "sandbox",
    body: json(file.changeModeBodySchema),
  },
  watchFiles: {
    ...look,
    path: `${FILES}/watch`,
    summary: "Stream the changes below a path",
    access: "sandbox",
    query: file.watchFilesQuerySchema,
    answer: { kind: "events", schema: file.fileEventSchema },
  },
  readArchive: {
    ...look,
    path: `${FILES}/archive`,
    summary: "Download a directory as a tar archive",
    access: "sandbox",
    query: file.pathQuerySchema,
    answer: bytes,
  },
  writeArchive: {
    ...change,
    method: "PUT",
    path: `${FILES}/archive`,
    summary: "Upload a tar archive and unpack it into a directory",
    access: "sandbox",
    query: file.pathQuerySchema,
    body: bytes,
    answer: json(file.writeResultSchema),
  },
} as const satisfies Record<string, Route>;
