import { fileURLToPath } from 'node:url'

/** The folder of the project. */
export const PROJECT_FOLDER = fileURLToPath(new URL('../', import.meta.url))
