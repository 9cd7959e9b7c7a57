// One probe of one process: finds CUPTI, subscribes, says what is in the way.
#pragma once

#include <memory>
#include <string>

#include "harness/probe/observer.h"
#include "harness/probe/report.h"

namespace warmgate::probe {

/// Subscribes `observer` to the calls of calls.h through `api`. "" or what is in the way, in words;
/// then nothing stays subscribed.
std::string attach(const cupti::Api& api, Observer& observer, const ObserverOptions& options,
                   void*& subscriber);

/// Ends it, so that CUPTI costs nothing any more. In a callback only on a call's way out.
void detach(const cupti::Api& api, void*& subscriber);

/// Switches the callbacks of launches.
void listen_to_launches(const cupti::Api& api, void* subscriber, bool on);

}  // namespace warmgate::probe
