<?php
/** Asks Latchkey whether a customer may use a feature, and denies where it cannot say: php gate.php cus_1 reports */
declare(strict_types=1);

function may_use(string $customerId, string $feature, float $timeout = 2.0): bool
{
    $url = (getenv('LATCHKEY_URL') ?: 'http://127.0.0.1:4680')
        . '/entitlements/' . rawurlencode($customerId) . '/features/' . rawurlencode($feature);
    $http = ['timeout' => $timeout, 'header' => 'Authorization: Bearer ' . getenv('LATCHKEY_API_KEY')];
    // False, with a warning, where there is no answer or none of 2xx: no answer, no access.
    $body = file_get_contents($url, false, stream_context_create(['http' => $http]));
    if ($body === false) {
        return false;
    }
    return (json_decode($body, true)['active'] ?? null) === true;
}

if (PHP_SAPI === 'cli') {
    if ($argc !== 3) {
        fwrite(STDERR, "usage: php gate.php <customer> <feature>\n");
        exit(2);
    }
    echo may_use($argv[1], $argv[2]) ? "yes\n" : "no\n";
}
