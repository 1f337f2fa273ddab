import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { launchChromium } from './chromium.js'
import { PATIENCE_MS } from './eventually.js'

/** One for all files that a process runs: to start one takes longer than many a test. */
let launched: Promise<Browser> | undefined

/** Opens a page in a window of its own, which knows nothing of others, and closes when the test ends. */
export async function openPage(url: string, options?: BrowserContextOptions): Promise<Page> {
  launched ??= launchChromium()
  const context = await (await launched).newContext(options)
  context.setDefaultTimeout(PATIENCE_MS)
  onTestFinished(() => context.close())
  const page = await context.newPage()
  await page.goto(url)
  return page
}
