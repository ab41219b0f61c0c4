#include "common/wire/failure_type.h"

namespace tutti::wire {

std::string_view failure_type(Failure failure, std::string_view message) {
  switch (failure) {
    case Failure::kNone:
    case Failure::kHttpStatus:
      return "error";
    case Failure::kConnect:
      return message.find("refused") != std::string_view::npos ? "ConnectionRefusedError"
                                                               : "OSError";
    case Failure::kConnectTimeout:
    case Failure::kRequestTimeout:
      return "TimeoutError";
    case Failure::kTls:
      return "SSLError";
    case Failure::kReset:
      return "ConnectionResetError";
    case Failure::kTruncated:
      return "IncompleteReadError";
    case Failure::kEmptyStream:
      return "EmptyStreamError";
    case Failure::kStreamError:
      return "StreamError";
    case Failure::kBadReply:
      return "DecodeError";
    case Failure::kCancelled:
      return "CancelledError";
    case Failure::kInternal:
      return "RuntimeError";
    case Failure::kTurnTimeout:
      return "TurnTimeout";
    case Failure::kTurnSkipped:
      return "TurnAbortedByPriorFailure";
  }
  return "error";
}

}  // namespace tutti::wire
