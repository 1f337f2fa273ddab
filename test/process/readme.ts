import { cpSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT, temporaryFolder } from '../world.js'

export const README = readFileSync(join(ROOT, 'README.md'), 'utf8')

/** The fenced blocks of one language, in order, without the indentation that a list gives them. */
export function blocks(language: string): string[] {
  const fences = README.matchAll(/^( *)```(\w*)\n([\s\S]*?)^\1```$/gm)
  return [...fences].flatMap(([, indent = '', name, text = '']) =>
    name === language ? [text.replaceAll(new RegExp(`^${indent}`, 'gm'), '').trimEnd()] : [],
  )
}

const FILE_NAME =
  /`(?:\.\/)?((?:src|test|data|migrations)(?:\/[\w./-]*)?|[\w.-]+\.(?:json|md|ts|txt)|LICENSE)`/g
const RELATIVE_LINK = /\]\((?!\w+:)([^)#]+)/g

/** The files and folders that it names, relative to the folder that it is in. */
export function namedFiles(): string[] {
  const names = [...README.matchAll(FILE_NAME), ...README.matchAll(RELATIVE_LINK)]
  return [...new Set(names.map(([, name = '']) => name))]
}

const CHECKED_OUT = [
  'package.json',
  'tsconfig.json',
  'scripts',
  'bench',
  'bin',
  'src',
  'migrations',
  'config.schema.json',
]

/** A checkout after `npm ci`: with its dependencies, and built. */
export function installedCheckout(): string {
  const folder = temporaryFolder()
  for (const name of [...CHECKED_OUT, 'dist']) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}
