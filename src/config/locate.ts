import { resolve } from 'node:path'

export interface ConfigLocation {
  readonly path: string
  /** Whether somebody chose it: a chosen file is never made, and its absence is an error. */
  readonly named: boolean
}

export interface LocateConfigOptions {
  /** The value of `--config`, if given. */
  readonly option?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly folder: string
}

/** `--config`, else `LATCHKEY_CONFIG`, else `config.json` in the current folder. */
export function locateConfig({ option, env, folder }: LocateConfigOptions): ConfigLocation {
  const named = option ?? (env.LATCHKEY_CONFIG || undefined)
  return { path: resolve(folder, named ?? 'config.json'), named: named !== undefined }
}
