import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

/** Nothing that axe finds, in light and dark, and nothing wider than the screen, down to a phone. */
export async function expectNoFault(page: Page): Promise<void> {
  for (const [colorScheme, width] of [['light', 1280] as const, ['dark', 320] as const]) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 720 })
    // It takes as long to bring axe into a page as to run it, and there it stays.
    const isThere = (await page.evaluate('window.axe !== undefined')) === true
    // It need not look into frames, since there are none, nor tell what is right.
    const axe = new AxeBuilder({ page, ...(isThere && { axeSource: ';' }) }).setLegacyMode()
    const { violations } = await axe.options({ resultTypes: ['violations'] }).analyze()
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    // What a dialog cuts off is beyond reach without a sign.
    const isCutOff = `[...document.querySelectorAll('dialog[open]')].some((one) => one.scrollWidth > one.clientWidth)`
    expect(await page.evaluate(isCutOff)).toBe(false)
  }
}
